package fencedkv_test

import (
	"context"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random tests; 0 takes the clock")
	steps = flag.Int("steps", 2000, "operations of TestStoreIsMarksAndMaps")
)

func newRand(t *testing.T) *rand.Rand {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed %d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// model is what a store promises, written down without a disk: a mark and a map
// for each resource.
type model struct {
	marks map[string]fence.Token
	data  map[string]map[string]string
}

// admit is the rule, written a second time so that a mistake in it shows.
func (m *model) admit(resource string, t fence.Token) error {
	high, marked := m.marks[resource]
	switch {
	case t.Seq == 0:
		return fence.ErrNoToken
	case !marked:
		return nil
	case t.Lineage != high.Lineage:
		return fence.ErrLineage
	case t.Seq < high.Seq:
		return fence.ErrStale
	case t.Seq == high.Seq && t.Holder != high.Holder:
		return fence.ErrCollision
	}
	return nil
}

// player makes random calls and compares. The properties:
//
//   - a write is admitted exactly if the rule admits its token, and then mark and
//     data are those of the model; else both are as before;
//   - an Update that fails, or one of whose claims is refused, changes nothing;
//   - reads, scans in both directions and the list of resources are those of the
//     model, inside a transaction those of the model with its own writes;
//   - closing and opening again changes nothing.
type player struct {
	t    *testing.T
	rnd  *rand.Rand
	s    *fencedkv.Store
	path string
	m    model
	next uint64
}

func (p *player) pick(from ...string) string { return from[p.rnd.IntN(len(from))] }

func (p *player) resource() string { return p.pick("a", "ab", "b", "\x00", "\xff\xff", "a/b") }

func (p *player) key() string {
	return strings.Repeat(p.pick("k", "l", "\x00", "\xff"), 1+p.rnd.IntN(3)) + p.pick("", "x", "y")
}

func (p *player) value() string { return strings.Repeat(p.pick("v", "w"), p.rnd.IntN(200)) }

// token is mostly near the highest so far, and now and then of another kind.
func (p *player) token() fence.Token {
	if p.rnd.IntN(4) == 0 {
		p.next++
	}
	t := fence.Token{Lineage: "l", Seq: p.next - min(p.next, uint64(p.rnd.IntN(3))), Holder: "h"}
	switch p.rnd.IntN(20) {
	case 0:
		t.Lineage = "m"
	case 1:
		t.Holder = "i"
	case 2:
		t = fence.Token{}
	}
	return t
}

func (p *player) same(what string, err, want error) {
	p.t.Helper()
	if want == nil && err != nil || !errors.Is(err, want) {
		p.t.Fatalf("%s: got %v, want %v", what, err, want)
	}
}

func (p *player) step() {
	ctx, r := p.t.Context(), p.resource()
	res := p.s.Resource(r)
	switch p.rnd.IntN(12) {
	case 0:
		t := p.token()
		want := p.m.admit(r, t)
		p.same("Raise", res.Raise(ctx, t), want)
		p.raise(want, r, t)
	case 1, 2, 3:
		t, k, v := p.token(), p.key(), p.value()
		want := p.m.admit(r, t)
		p.same("Put", res.Put(ctx, t, []byte(k), []byte(v)), want)
		if p.raise(want, r, t) {
			p.m.data[r][k] = v
		}
	case 4:
		t, k := p.token(), p.key()
		want := p.m.admit(r, t)
		p.same("Delete", res.Delete(ctx, t, []byte(k)), want)
		if p.raise(want, r, t) {
			delete(p.m.data[r], k)
		}
	case 5, 6, 7:
		p.update()
	case 8:
		p.reopen()
	default:
		p.compare(r)
	}
}

// raise notes an admitted token in the model.
func (p *player) raise(refusal error, r string, t fence.Token) (admitted bool) {
	if refusal != nil {
		return false
	}
	p.m.marks[r] = t
	if p.m.data[r] == nil {
		p.m.data[r] = map[string]string{}
	}
	return true
}

// update writes to one to three resources, and sometimes fails.
func (p *player) update() {
	own := errors.New("own")
	tokens := map[string]fence.Token{}
	for range 1 + p.rnd.IntN(3) {
		tokens[p.resource()] = p.token()
	}
	var claims []fencedkv.Claim
	var want error
	for _, r := range slices.Sorted(maps.Keys(tokens)) {
		claims = append(claims, fencedkv.Claim{Resource: r, Token: tokens[r]})
		if want == nil {
			want = p.m.admit(r, tokens[r])
		}
	}
	p.rnd.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
	fails := p.rnd.IntN(4) == 0
	ran := false
	after := map[string]map[string]string{}

	err := p.s.Update(p.t.Context(), claims, func(_ context.Context, mtx *fencedkv.MultiTx) error {
		ran = true
		for r := range tokens {
			tx, err := mtx.Resource(r)
			p.same("MultiTx.Resource", err, nil)
			after[r] = p.fill(tx, maps.Clone(p.m.data[r]))
		}
		if fails {
			return own
		}
		return nil
	})
	if ran != (want == nil) {
		p.t.Fatalf("the function ran: %v, with the model's outcome %v", ran, want)
	}
	if want == nil && fails {
		want = own
	}
	p.same("Update", err, want)
	for r, t := range tokens {
		if p.raise(want, r, t) {
			p.m.data[r] = after[r]
		}
	}
}

// fill makes random writes and returns what the resource then holds.
func (p *player) fill(tx *fencedkv.Tx, data map[string]string) map[string]string {
	if data == nil {
		data = map[string]string{}
	}
	for range p.rnd.IntN(8) {
		k, v := p.key(), p.value()
		if p.rnd.IntN(3) == 0 {
			p.same("Tx.Delete", tx.Delete([]byte(k)), nil)
			delete(data, k)
		} else {
			p.same("Tx.Put", tx.Put([]byte(k), []byte(v)), nil)
			data[k] = v
		}
	}
	p.scan(tx.Scan, tx.Get, data)
	return data
}

// compare reads a resource in every way.
func (p *player) compare(r string) {
	res := p.s.Resource(r)
	m, err := res.Highest(p.t.Context())
	if err != nil || m.Token != p.m.marks[r] {
		p.t.Fatalf("Highest(%q) = %v, %v, want %v", r, m, err, p.m.marks[r])
	}
	p.same("View", res.View(p.t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		p.scan(tx.Scan, tx.Get, p.m.data[r])
		return nil
	}), nil)
	k := p.key()
	v, err := res.Get(p.t.Context(), []byte(k))
	want, there := p.m.data[r][k]
	if there && (err != nil || string(v) != want) || !there && !errors.Is(err, fencedkv.ErrNotFound) {
		p.t.Fatalf("Get(%q, %q) = %q, %v, want %q, %v", r, k, v, err, want, there)
	}
}

func (p *player) reopen() {
	must(p.t, p.s.Close())
	s, err := fencedkv.Open(p.path, nil)
	must(p.t, err)
	p.s = s
	must(p.t, s.Check(p.t.Context()))
	var got []string
	for info, err := range s.Resources(p.t.Context()) {
		must(p.t, err)
		got = append(got, info.Name)
		if info.Highest.Token != p.m.marks[info.Name] {
			p.t.Fatalf("Resources: %q has %v, want %v", info.Name, info.Highest, p.m.marks[info.Name])
		}
	}
	if want := slices.Sorted(maps.Keys(p.m.marks)); !slices.Equal(got, want) {
		p.t.Fatalf("Resources: got %q, want %q", got, want)
	}
}

func TestStoreIsMarksAndMaps(t *testing.T) {
	p := &player{
		t: t, rnd: newRand(t), path: filepath.Join(t.TempDir(), "s.db"), next: 1,
		m: model{marks: map[string]fence.Token{}, data: map[string]map[string]string{}},
	}
	s, err := fencedkv.Open(p.path, nil)
	must(t, err)
	p.s = s
	for range *steps {
		p.step()
	}
	must(t, p.s.Close())
	checkFile(t, p.path)
}
