package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of go test -json (see go doc test2json and go help buildjson).
type event struct {
	Action     string
	Package    string
	Test       string
	ImportPath string // of a build event
	Output     string
}

// line is a piece of output and the test that wrote it, "" for the package.
type line struct{ test, text string }

// result is one package while it runs.
type result struct {
	lines []line
	tests map[string]string // its last action: run, pass, fail, skip
}

// report collects a run and prints each package when it has ended.
type report struct {
	out     io.Writer
	running map[string]*result
	ended   map[string]bool

	passed, failed int
	skipped        []testID
	skipOutput     map[testID]string
	broken         int // packages that failed and builds
}

func newReport(out io.Writer) *report {
	return &report{
		out:        out,
		running:    make(map[string]*result),
		ended:      make(map[string]bool),
		skipOutput: make(map[testID]string),
	}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		text, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var e event
			if json.Unmarshal(text, &e) != nil || e.Action == "" {
				// go itself speaks plainly, of a module that is missing say.
				fmt.Fprintf(r.out, "%s\n", bytes.TrimRight(text, "\r\n"))
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail":
		r.broken++
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &result{tests: make(map[string]string)}
		r.running[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.lines = append(p.lines, line{e.Test, e.Output})
	case "run", "pass", "fail", "skip":
		if e.Test != "" {
			p.tests[e.Test] = e.Action
			r.count(e, p)
			return
		}
		if e.Action != "run" {
			r.end(e.Package, e.Action, p)
		}
	}
}

func (r *report) count(e event, p *result) {
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
	case "skip":
		id := testID{e.Package, e.Test}
		r.skipped = append(r.skipped, id)
		r.skipOutput[id] = p.output(func(l line) bool { return l.test == e.Test })
	}
}

// end prints a package as go test does without -json.
func (r *report) end(pkg, action string, p *result) {
	delete(r.running, pkg)
	r.ended[pkg] = true
	if action != "fail" {
		fmt.Fprint(r.out, p.output(func(l line) bool {
			return l.test == "" && (strings.HasPrefix(l.text, "ok  \t") || strings.HasPrefix(l.text, "?   \t"))
		}))
		return
	}
	r.broken++
	for _, last := range p.tests {
		if last == "run" { // the process ended in the middle of it
			r.failed++
		}
	}
	fmt.Fprint(r.out, p.output(func(l line) bool {
		if l.test == "" {
			return true
		}
		last := p.tests[l.test]
		return last != "pass" && last != "skip"
	}))
}

// output is what the lines that are wanted say, without the progress marks.
func (p *result) output(wanted func(line) bool) string {
	var b strings.Builder
	for _, l := range p.lines {
		if wanted(l) && !strings.HasPrefix(l.text, "=== ") {
			b.WriteString(l.text)
		}
	}
	return b.String()
}

// finish prints what the packages did not, and returns the exit status.
func (r *report) finish(allowed allowList) int {
	status := 0
	for _, pkg := range slices.Sorted(maps.Keys(r.running)) {
		r.end(pkg, "fail", r.running[pkg])
		fmt.Fprintf(r.out, "FAIL\t%s [the stream ended before the package]\n", pkg)
	}
	if r.broken > 0 || r.failed > 0 {
		status = 1
	}
	happened := make(map[testID]bool)
	for _, id := range r.skipped {
		happened[id] = true
		if _, ok := allowed[id]; !ok {
			fmt.Fprintf(r.out, "SKIP\t%v is not in the list of allowed skips:\n%s", id, r.skipOutput[id])
			status = 1
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(allowed), func(a, b testID) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if r.ended[id.pkg] && !happened[id] {
			fmt.Fprintf(r.out, "note: %v is in the list of allowed skips and was not skipped\n", id)
		}
	}
	if r.passed+r.failed+len(r.skipped) == 0 {
		fmt.Fprintln(r.out, "FAIL: no test ran")
		status = 1
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skipped))
	return status
}
