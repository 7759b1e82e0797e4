package damage_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// task is what a parent sends to a worker: damages [From, To) of a kind, or
// those of a list.
type task struct {
	kind kind
	list []int
}

// String is a line.
func (t task) String() string {
	var b strings.Builder
	b.WriteString(string(t.kind))
	for _, n := range t.list {
		fmt.Fprintf(&b, " %d", n)
	}
	return b.String()
}

func parseTask(line string) (t task, err error) {
	words := strings.Fields(line)
	t.kind = kind(words[0])
	for _, w := range words[1:] {
		var n int
		if _, err := fmt.Sscan(w, &n); err != nil {
			return t, err
		}
		t.list = append(t.list, n)
	}
	return t, nil
}

// work is the worker: a task on each line of standard input, a verdict for each
// damage on a line of standard output.
func work(text string) error {
	debug.SetMaxStack(8 << 20) // a stack that overflows is to do so at once
	c, err := loadCorpus(text)
	if err != nil {
		return err
	}
	a, err := dissect(c.sound)
	if err != nil {
		return err
	}
	b := &bench{corpus: c, anatomy: a, path: fmt.Sprintf("%s/worker-%d.db", c.Dir, os.Getpid())}
	defer os.Remove(b.path)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		t, err := parseTask(in.Text())
		if err != nil {
			return err
		}
		for _, n := range t.list {
			v, err := b.examine(t.kind, n)
			if err != nil {
				return err
			}
			fmt.Printf("%d %s\n", v.class, strings.ReplaceAll(v.detail, "\n", " "))
		}
	}
	return in.Err()
}

// bench is where a worker damages its copy of the store.
type bench struct {
	corpus  *corpus
	anatomy *anatomy
	path    string
	now     []byte // what the file holds, nil if that is not known
	older   []model
}

func (b *bench) examine(k kind, n int) (verdict, error) {
	switch k {
	case cut, zeros, moved, aged:
		return b.whileOpen(k, n)
	}
	want := bytes.Clone(b.corpus.sound)
	for _, p := range b.corpus.damaged(k, n) {
		copy(want[p.at:], p.to)
	}
	if err := b.write(want); err != nil {
		return verdict{}, err
	}
	x := newExam(b.path, b.corpus.model)
	switch k {
	case flip, settled:
		x.focus = b.anatomy.focusOf(n / 8)
	case lose:
		x.older = b.olderModels()
	}
	v := x.run()
	is, err := os.ReadFile(b.path)
	if err != nil {
		return verdict{}, err
	}
	b.now = is
	if !bytes.Equal(is, want) && !x.saw(admitted) {
		v = max2(v, verdict{wrote, fmt.Sprintf("%d bytes before, %d after", len(want), len(is))})
	}
	if k == settled && v.class == harmless {
		v = b.writeOn()
	}
	return v, nil
}

// write makes the file hold image.
func (b *bench) write(image []byte) error {
	if len(b.now) != len(image) {
		b.now = nil
	}
	f, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if b.now == nil {
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	for at := 0; at < len(image); at += pageSize {
		page := image[at : at+pageSize]
		if b.now != nil && bytes.Equal(page, b.now[at:at+pageSize]) {
			continue
		}
		if _, err := f.WriteAt(page, int64(at)); err != nil {
			return err
		}
	}
	b.now = nil // until it was read again
	return nil
}

func (b *bench) olderModels() []model {
	if b.older == nil {
		s := recipes[b.corpus.Name].script
		for i := range s[1:] {
			b.older = append(b.older, s[:i+1].model())
		}
	}
	return b.older
}

func max2(a, b verdict) verdict {
	if b.class > a.class {
		return b
	}
	return a
}
