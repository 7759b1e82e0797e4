package damage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// corpus is a sound store, and what it was after each commit before the last.
type corpus struct {
	Name  string
	Dir   string // of the files, and of what the workers make
	Older int    // number of older states

	model   model
	sound   []byte
	foreign []byte   // another store
	older   [][]byte // the newest last
}

// recipe is how a corpus is made.
type recipe struct {
	script script
	// reuse lets a commit take the pages that those before it have freed. bbolt
	// takes any of them that fits, so that no two files are the same.
	reuse bool
}

var recipes = map[string]recipe{
	"few":     {fewScript(1, 12), false},
	"many":    {manyScript(1, 331), false},
	"few-old": {fewScript(4, 4), true},
	// Each leaf is written again several times, so that there are older ones.
	"many-old": {manyScript(5, 90), true},
}

var made = struct {
	sync.Mutex
	dir    string
	corpus map[string]*corpus
}{corpus: map[string]*corpus{}}

// theCorpus makes a corpus once.
func theCorpus(t *testing.T, name string) *corpus {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	if c := made.corpus[name]; c != nil {
		return c
	}
	c := &corpus{Name: name, Dir: filepath.Join(made.dir, name)}
	must(t, os.Mkdir(c.Dir, 0o700))
	// With its own clock and random numbers the file is the same in every run.
	cryptotest.SetGlobalRandom(t, 1)
	synctest.Test(t, func(t *testing.T) { c.build(t) })
	for i, image := range append(c.older, c.sound) {
		must(t, os.WriteFile(c.file(i), image, 0o600))
	}
	c.Older = len(c.older)
	made.corpus[name] = c
	return c
}

const foreignFile = "other.db"

func (c *corpus) file(i int) string { return filepath.Join(c.Dir, fmt.Sprintf("state-%d", i)) }

func (c *corpus) build(t testing.TB) {
	path := filepath.Join(c.Dir, "made.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	other, err := fencedkv.Open(filepath.Join(c.Dir, foreignFile), nil)
	must(t, err)
	must(t, write(t.Context(), other, further(recipes["few"].script.model(), 0)))
	must(t, other.Close())
	recipe := recipes[c.Name]
	end := make(chan struct{})
	if !recipe.reuse {
		end = keepPages(t, s)
	}
	for _, commit := range recipe.script {
		must(t, write(t.Context(), s, commit))
		image, err := os.ReadFile(path)
		must(t, err)
		c.older = append(c.older, image)
	}
	close(end)
	must(t, s.Close())
	c.model = recipe.script.model()
	for i, image := range c.older {
		// bbolt grows a file ahead of its need. What lies behind the last page
		// that it has used is nobody's.
		c.older[i] = image[:int(newestMeta(image).pages)*pageSize]
	}
	last := len(c.older) - 1
	c.sound, c.older = c.older[last], c.older[:last]
}

// keepPages holds a snapshot, which keeps pages that are freed from being used
// again, until the channel is closed.
func keepPages(t testing.TB, s *fencedkv.Store) chan struct{} {
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		err := s.Resource("none").View(t.Context(), func(context.Context, *fencedkv.ReadTx) error {
			close(begun)
			<-end
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-begun
	return end
}

// write raises marks, then writes values. Each is a commit of its own, because
// bbolt takes the buckets of a commit in any order.
func write(ctx context.Context, s *fencedkv.Store, commit []change) error {
	var claims []fencedkv.Claim
	for _, c := range commit {
		claims = append(claims, fencedkv.Claim{Resource: c.resource, Token: token(c.seq)})
	}
	nothing := func(context.Context, *fencedkv.MultiTx) error { return nil }
	if err := s.Update(ctx, claims, nothing); err != nil {
		return err
	}
	return s.Update(ctx, claims, func(_ context.Context, mtx *fencedkv.MultiTx) error {
		for _, c := range commit {
			tx, err := mtx.Resource(c.resource)
			if err != nil {
				return err
			}
			for k, v := range c.put {
				if err := tx.Put([]byte(k), v); err != nil {
					return err
				}
			}
			for _, k := range c.delete {
				if err := tx.Delete([]byte(k)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// loadCorpus is what a worker does with the corpus that its parent has made.
func loadCorpus(text string) (*corpus, error) {
	c := new(corpus)
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, err
	}
	c.model = recipes[c.Name].script.model()
	for i := range c.Older + 1 {
		image, err := os.ReadFile(c.file(i))
		if err != nil {
			return nil, err
		}
		c.older = append(c.older, image)
	}
	c.sound, c.older = c.older[c.Older], c.older[:c.Older]
	foreign, err := os.ReadFile(filepath.Join(c.Dir, foreignFile))
	c.foreign = foreign
	return c, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
