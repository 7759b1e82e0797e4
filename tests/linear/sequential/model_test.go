package sequential_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// content is what a resource holds.
type content map[string]string

// model is what a store promises, without a disk: a mark and a map for each
// resource that has admitted a token.
type model struct {
	marks map[string]fence.Token
	data  map[string]content
}

func newModel() *model {
	return &model{marks: map[string]fence.Token{}, data: map[string]content{}}
}

// admit is the rule of package fence, written a second time so that a mistake in
// it shows.
func (m *model) admit(resource string, t fence.Token) error {
	highest, marked := m.marks[resource]
	switch {
	case t.Seq == 0:
		return fence.ErrNoToken
	case len(t.Lineage) > fence.MaxLineage || len(t.Holder) > fence.MaxHolder:
		return fence.ErrBadToken
	case !marked:
		return nil
	case t.Lineage != highest.Lineage:
		return fence.ErrLineage
	case t.Seq < highest.Seq:
		return fence.ErrStale
	case t.Seq == highest.Seq && t.Holder != highest.Holder:
		return fence.ErrCollision
	}
	return nil
}

// commit applies a transaction that was admitted.
func (m *model) commit(tokens map[string]fence.Token, after map[string]content) {
	for resource, t := range tokens {
		m.marks[resource] = t
		if m.data[resource] == nil {
			m.data[resource] = content{}
		}
		if c := after[resource]; c != nil {
			m.data[resource] = c
		}
	}
}

// scan is what a scan of the range returns, as "key=value".
func (c content) scan(r fencedkv.Range) []string {
	found := []string{}
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if strings.HasPrefix(k, string(r.Prefix)) && k >= string(r.Start) && (len(r.End) == 0 || k < string(r.End)) {
			found = append(found, k+"="+c[k])
		}
	}
	if r.Reverse {
		slices.Reverse(found)
	}
	if r.Limit > 0 && len(found) > r.Limit {
		found = found[:r.Limit]
	}
	return found
}
