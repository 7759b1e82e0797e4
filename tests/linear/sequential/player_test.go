package sequential_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// player makes a call of the store, and compares it with the model.
type player struct {
	store *fencedkv.Store
	path  string
	model *model
}

var errOwn = errors.New("own")

func (p *player) open(t *rapid.T) {
	s, err := fencedkv.Open(p.path, options(t))
	same(t, "Open", err, nil)
	p.store = s
}

// reopen closes and opens the store; everything is as it was, and sound.
func (p *player) reopen(t *rapid.T) {
	same(t, "Close", p.store.Close(), nil)
	same(t, "Raise when closed", p.store.Resource("a").Raise(context.Background(), fence.Number(1)), fencedkv.ErrClosed)
	p.open(t)
	same(t, "Check", p.store.Check(context.Background()), nil)
}

// one is a call that writes one resource and is decided at once.
func (p *player) one(t *rapid.T, what, resource string, token fence.Token, err error, apply func(content)) {
	want := p.model.admit(resource, token)
	same(t, what, err, want)
	if rejected := (*fence.RejectedError)(nil); errors.As(err, &rejected) {
		if rejected.Resource != resource || rejected.Offered != token || rejected.Mark.Token != p.model.marks[resource] {
			t.Fatalf("%s: the refusal says %+v, want the resource, the token and the mark %v", what, rejected, p.model.marks[resource])
		}
	}
	if want == nil {
		p.model.commit(map[string]fence.Token{resource: token}, nil)
		apply(p.model.data[resource])
	}
}

func (p *player) raise(t *rapid.T) {
	r, token := names.Draw(t, "resource"), tokens.Draw(t, "token")
	p.one(t, "Raise", r, token, p.store.Resource(r).Raise(context.Background(), token), func(content) {})
}

func (p *player) put(t *rapid.T) {
	r, token := names.Draw(t, "resource"), tokens.Draw(t, "token")
	k, v := keys.Draw(t, "key"), values.Draw(t, "value")
	err := p.store.Resource(r).Put(context.Background(), token, []byte(k), []byte(v))
	p.one(t, "Put", r, token, err, func(c content) { c[k] = v })
}

func (p *player) remove(t *rapid.T) {
	r, token, k := names.Draw(t, "resource"), tokens.Draw(t, "token"), keys.Draw(t, "key")
	err := p.store.Resource(r).Delete(context.Background(), token, []byte(k))
	p.one(t, "Delete", r, token, err, func(c content) { delete(c, k) })
}

// update writes to one to three resources, reads what it has written, and
// sometimes fails.
func (p *player) update(t *rapid.T) {
	claimed := rapid.SliceOfNDistinct(names, 1, 3, rapid.ID[string]).Draw(t, "resources")
	offered := map[string]fence.Token{}
	var claims []fencedkv.Claim
	for _, r := range claimed {
		offered[r] = tokens.Draw(t, "token")
		claims = append(claims, fencedkv.Claim{Resource: r, Token: offered[r]})
	}
	var want error
	for _, r := range slices.Sorted(slices.Values(claimed)) {
		if want == nil {
			want = p.model.admit(r, offered[r])
		}
	}
	fails := rapid.IntRange(0, 3).Draw(t, "failure") == 0
	after, ran := map[string]content{}, false

	run := func(_ context.Context, tx func(string) (*fencedkv.Tx, error)) error {
		ran = true
		for _, r := range claimed {
			one, err := tx(r)
			same(t, "MultiTx.Resource", err, nil)
			after[r] = fill(t, one, maps.Clone(p.model.data[r]))
		}
		_, err := tx("not claimed")
		same(t, "MultiTx.Resource of no claim", err, fencedkv.ErrNotClaimed)
		if fails {
			return errOwn
		}
		return nil
	}
	err := p.store.Update(context.Background(), claims, func(ctx context.Context, tx *fencedkv.MultiTx) error {
		return run(ctx, tx.Resource)
	})
	if ran != (want == nil) {
		t.Fatalf("the function ran: %v; the model says %v", ran, want)
	}
	if want == nil && fails {
		want = errOwn
	}
	same(t, "Update", err, want)
	if want == nil {
		p.model.commit(offered, after)
	}
}

// fill makes writes in a transaction and returns what the resource then holds.
func fill(t *rapid.T, tx *fencedkv.Tx, c content) content {
	if c == nil {
		c = content{}
	}
	for range rapid.IntRange(0, 5).Draw(t, "writes") {
		k := keys.Draw(t, "key")
		if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
			same(t, "Tx.Delete", tx.Delete([]byte(k)), nil)
			delete(c, k)
			continue
		}
		v := values.Draw(t, "value")
		same(t, "Tx.Put", tx.Put([]byte(k), []byte(v)), nil)
		c[k] = v
	}
	read(t, tx.Scan, tx.Get, c)
	return c
}

// view reads a resource in every way.
func (p *player) view(t *rapid.T) {
	r := names.Draw(t, "resource")
	res := p.store.Resource(r)
	m, err := res.Highest(context.Background())
	if err != nil || m.Token != p.model.marks[r] {
		t.Fatalf("Highest(%q) = %v, %v, want %v", r, m, err, p.model.marks[r])
	}
	same(t, "View", res.View(context.Background(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		m, err := tx.Highest()
		if err != nil || m.Token != p.model.marks[r] {
			t.Fatalf("ReadTx.Highest of %q = %v, %v, want %v", r, m, err, p.model.marks[r])
		}
		read(t, tx.Scan, tx.Get, p.model.data[r])
		return nil
	}), nil)
	get := func(k []byte) ([]byte, error) { return res.Get(context.Background(), k) }
	read(t, nil, get, p.model.data[r])
}

// list compares the resources.
func (p *player) list(t *rapid.T) {
	got := map[string]fence.Token{}
	for info, err := range p.store.Resources(context.Background()) {
		same(t, "Resources", err, nil)
		got[info.Name] = info.Highest.Token
	}
	if !maps.Equal(got, p.model.marks) {
		t.Fatalf("Resources: got %v, want %v", got, p.model.marks)
	}
}

// read compares a key and, if there is a scan, a range.
func read(t *rapid.T, scan func(fencedkv.Range) iter.Seq2[fencedkv.KV, error], get func([]byte) ([]byte, error), c content) {
	k := keys.Draw(t, "key")
	v, err := get([]byte(k))
	want, there := c[k]
	if there && (err != nil || string(v) != want) || !there && !errors.Is(err, fencedkv.ErrNotFound) {
		t.Fatalf("Get(%.20q) = %.20q, %v, want %.20q, %v", k, v, err, want, there)
	}
	if scan == nil {
		return
	}
	r := ranges.Draw(t, "range")
	got := []string{}
	for kv, err := range scan(r) {
		same(t, "Scan", err, nil)
		got = append(got, string(kv.Key)+"="+string(kv.Value))
	}
	if want := c.scan(r); !slices.Equal(got, want) {
		t.Fatalf("Scan(%+v): got %.200q, want %.200q", r, got, want)
	}
}

func same(t *rapid.T, what string, err, want error) {
	if want == nil && err != nil || !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", what, err, want)
	}
}
