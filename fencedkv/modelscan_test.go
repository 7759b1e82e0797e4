package fencedkv_test

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// scan compares a random range of a transaction, and one key, with data.
func (p *player) scan(
	scan func(fencedkv.Range) iter.Seq2[fencedkv.KV, error],
	get func([]byte) ([]byte, error),
	data map[string]string,
) {
	p.t.Helper()
	r := fencedkv.Range{Reverse: p.rnd.IntN(2) == 0}
	if p.rnd.IntN(2) == 0 {
		r.Prefix = []byte(p.pick("k", "l", "\x00", "\xff", "kk"))
	}
	if p.rnd.IntN(2) == 0 {
		r.Start = []byte(p.key())
	}
	if p.rnd.IntN(2) == 0 {
		r.End = []byte(p.key())
	}
	if p.rnd.IntN(3) == 0 {
		r.Limit = 1 + p.rnd.IntN(4)
	}
	var want []string
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if strings.HasPrefix(k, string(r.Prefix)) && k >= string(r.Start) && (len(r.End) == 0 || k < string(r.End)) {
			want = append(want, k+"="+data[k])
		}
	}
	if r.Reverse {
		slices.Reverse(want)
	}
	if r.Limit > 0 && len(want) > r.Limit {
		want = want[:r.Limit]
	}
	if got := keysOf(p.t, scan(r)); !slices.Equal(got, want) {
		p.t.Fatalf("Scan(%+v): got %q, want %q", r, got, want)
	}
	k := p.key()
	v, err := get([]byte(k))
	value, there := data[k]
	if there && (err != nil || string(v) != value) || !there && !errors.Is(err, fencedkv.ErrNotFound) {
		p.t.Fatalf("Get(%q) = %q, %v, want %q, %v", k, v, err, value, there)
	}
}
