package damage_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// change is what one resource gets in a commit.
type change struct {
	resource string
	seq      uint64
	put      map[string][]byte
	delete   []string
}

// script is the commits that make a store.
type script [][]change

// model is what a store holds, in order of its resources.
type model []entry

type entry struct {
	name string
	seq  uint64
	keys []pair // in order
}

type pair struct {
	key   string
	value []byte
}

func token(seq uint64) fence.Token { return fence.Token{Lineage: "l", Seq: seq, Holder: "h"} }

// after returns the model of what the commits leave.
func (s script) model() model {
	type content struct {
		seq  uint64
		keys map[string][]byte
	}
	all := map[string]*content{}
	for _, commit := range s {
		for _, c := range commit {
			r := all[c.resource]
			if r == nil {
				r = &content{keys: map[string][]byte{}}
				all[c.resource] = r
			}
			r.seq = c.seq
			maps.Copy(r.keys, c.put)
			for _, k := range c.delete {
				delete(r.keys, k)
			}
		}
	}
	var m model
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := entry{name: name, seq: all[name].seq}
		for _, k := range slices.Sorted(maps.Keys(all[name].keys)) {
			e.keys = append(e.keys, pair{k, all[name].keys[k]})
		}
		m = append(m, e)
	}
	return m
}

// content returns bytes that no other name and version have.
func content(name string, version, size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s %d", name, version))).Read(b)
	return b
}

// fewScript makes a store with fewer records than Open compares, long names, and
// values of all sizes. It writes every n-th resource again, in so many commits.
func fewScript(again, n int) script {
	const resources = 36
	name := func(i int) string {
		n := fmt.Sprintf("r%02d", i)
		if i%2 == 0 {
			n += strings.Repeat("/long", 60)
		}
		return n
	}
	sizes := []int{0, 1, 30, 700, 1400, 3000}
	var s script
	var first []change
	for i := range resources {
		c := change{resource: name(i), seq: uint64(100 + i), put: map[string][]byte{}}
		if i%3 == 0 {
			for k := range 3 {
				key := fmt.Sprintf("k%d", k)
				c.put[key] = content(name(i)+key, 0, sizes[(i/3+k)%len(sizes)])
			}
		}
		first = append(first, c)
	}
	s = append(s, first)
	// What is deleted lies in one leaf at a time: bbolt merges leaves in any order.
	s = append(s,
		[]change{{resource: name(0), seq: 100, delete: []string{"k0", "k2"}}},
		[]change{{resource: name(33), seq: 133, delete: []string{"k1"}}},
		[]change{{resource: name(9), seq: 109, put: map[string][]byte{"large": content("large", 1, 9000)}}},
	)
	for version := range again {
		var commit []change
		for i := version; i < resources; i += n {
			c := change{resource: name(i), seq: uint64(300 + 100*version + i)}
			if i%3 == 0 {
				c.put = map[string][]byte{"k1": content(name(i)+"k1", 2+version, sizes[(i/3+1)%len(sizes)])}
			}
			commit = append(commit, c)
		}
		s = append(s, commit)
	}
	return s
}

// manyScript makes a store with more marks and more values than Open compares.
// It writes every n-th record again, in so many commits.
func manyScript(again, n int) script {
	const resources, keys = 1100, 1100
	name := func(i int) string {
		if 700 <= i && i < 800 {
			// Of these a leaf has 32: one bit of its count makes it empty.
			return fmt.Sprintf("r%04d/with-a-longer-name-%d", i, i%10)
		}
		return fmt.Sprintf("r%04d", i)
	}
	// Eight resources hold the keys.
	holder := func(k int) int { return k/(keys/8+1)*131 + 50 }
	key := func(k int) string { return fmt.Sprintf("k%04d", k) }
	var s script
	var first []change
	for i := range resources {
		c := change{resource: name(i), seq: uint64(1000 + i), put: map[string][]byte{}}
		for k := range keys {
			if holder(k) == i {
				c.put[key(k)] = content(key(k), 0, 4+k%5)
			}
		}
		first = append(first, c)
	}
	s = append(s, first)
	for version := range again {
		var commit []change
		for i := version * 7; i < resources; i += n {
			commit = append(commit, change{resource: name(i), seq: uint64(3000 + 2000*version + i)})
		}
		for k := version * 11; k < keys; k += n {
			c := change{resource: name(holder(k)), seq: uint64(3000 + 2000*version + k)}
			if version == again-1 {
				c.delete = []string{key(k)}
			} else {
				c.put = map[string][]byte{key(k): content(key(k), 1+version, 4+k%5)}
			}
			commit = append(commit, c)
		}
		s = append(s, merged(commit))
	}
	return s
}

// merged joins the changes of one resource.
func merged(commit []change) []change {
	at := map[string]int{}
	var out []change
	for _, c := range commit {
		i, found := at[c.resource]
		if !found {
			at[c.resource] = len(out)
			out = append(out, change{resource: c.resource, put: map[string][]byte{}})
			i = len(out) - 1
		}
		out[i].seq = max(out[i].seq, c.seq)
		maps.Copy(out[i].put, c.put)
		out[i].delete = append(out[i].delete, c.delete...)
	}
	return out
}
