package damage_test

import (
	"context"
	"slices"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// rounds is how often a store in which no damage was found is written to: so
// often that bbolt uses every page that was free, and reuses what it frees.
const rounds = 3

// writeOn goes on to work with a store in which no damage was found, as its user
// would, and looks again: a damaged page number or free list does no harm until
// it is used.
func (b *bench) writeOn() verdict {
	b.now = nil
	m, err := b.writeRounds()
	if err != nil {
		return verdict{late, err.Error()}
	}
	x := newExam(b.path, m)
	x.focus = newFocus()
	x.focus.spread(b.anatomy)
	if v := x.run(); v.class != harmless {
		return verdict{late, v.class.String() + ": " + v.detail}
	}
	return verdict{}
}

// writeRounds returns the model of what is then there.
func (b *bench) writeRounds() (model, error) {
	ctx := context.Background()
	s, err := fencedkv.Open(b.path, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	commits := slices.Clone(recipes[b.corpus.Name].script)
	for round := range rounds {
		commit := further(b.corpus.model, round)
		commits = append(commits, commit)
		if err := write(ctx, s, commit); err != nil {
			return nil, err
		}
		if err := s.Check(ctx); err != nil {
			return nil, err
		}
	}
	return commits.model(), nil
}

// further is a commit that reaches every leaf, a few records of each in a round.
func further(m model, round int) (commit []change) {
	for i, e := range m {
		if i%rounds != round {
			continue
		}
		c := change{resource: e.name, seq: 100_000 + uint64(round), put: map[string][]byte{}}
		for k, p := range e.keys {
			if k%rounds == round {
				c.put[p.key] = content(p.key, 100+round, len(p.value))
			}
		}
		commit = append(commit, c)
	}
	return commit
}
