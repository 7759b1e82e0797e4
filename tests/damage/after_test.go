package damage_test

import (
	"context"
	"slices"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// writeOn goes on to work with a store in which no damage was found, as its user
// would, and looks again: a damaged page number or free list does no harm until
// it is used.
func (b *bench) writeOn() verdict {
	b.now = nil
	for round := range 6 {
		v := b.writeOnce(round)
		if v.class != harmless {
			return verdict{late, v.class.String() + ": " + v.detail}
		}
	}
	return verdict{}
}

func (b *bench) writeOnce(round int) verdict {
	s, err := fencedkv.Open(b.path, nil)
	if err != nil {
		return verdict{otherError, "Open: " + err.Error()}
	}
	commits := slices.Clone(recipes[b.corpus.Name].script)
	for r := range round + 1 {
		commits = append(commits, further(b.corpus.model, r)...)
	}
	for _, commit := range further(b.corpus.model, round) {
		if err := write(context.Background(), s, commit); err != nil {
			s.Close()
			return verdict{otherError, "Update: " + err.Error()}
		}
	}
	x := newExam(b.path, commits.model())
	x.read(context.Background(), s)
	x.stale(context.Background(), s)
	x.check(context.Background(), s)
	if err := s.Close(); err != nil {
		x.failed(err, "Close")
	}
	if v := x.verdict(); v.class != harmless {
		return v
	}
	return newExam(b.path, x.model).run()
}

// further is commits that reach every leaf, a few records of each in a round.
func further(m model, round int) [][]change {
	var commit []change
	for i, e := range m {
		if i%6 != round {
			continue
		}
		c := change{resource: e.name, seq: 100_000 + uint64(round), put: map[string][]byte{}}
		for k, p := range e.keys {
			if k%6 == round {
				c.put[p.key] = content(p.key, 100+round, len(p.value))
			}
		}
		commit = append(commit, c)
	}
	return [][]change{commit}
}
