package fencedkv_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestLimitsAreNamed(t *testing.T) {
	s := open(t, nil)
	r, tok := s.Resource("r"), token(1, "")
	var zero *fencedkv.LimitError
	long := s.Resource(strings.Repeat("r", fencedkv.MaxResource+1))
	key, value := make([]byte, fencedkv.MaxKey+1), make([]byte, fencedkv.MaxValue+1)

	inUpdate := func(fn func(*fencedkv.Tx) error) error {
		return r.Update(t.Context(), tok, func(_ context.Context, tx *fencedkv.Tx) error { return fn(tx) })
	}
	cases := map[string]struct {
		err  error
		what string
	}{
		"Put, resource":    {long.Put(t.Context(), tok, b("k"), b("v")), "resource name"},
		"Raise, resource":  {long.Raise(t.Context(), tok), "resource name"},
		"Highest":          {func() error { _, err := long.Highest(t.Context()); return err }(), "resource name"},
		"Update, resource": {long.Update(t.Context(), tok, func(context.Context, *fencedkv.Tx) error { return nil }), "resource name"},
		"View, resource":   {long.View(t.Context(), func(context.Context, *fencedkv.ReadTx) error { return nil }), "resource name"},
		"Claim, resource": {s.Update(t.Context(), []fencedkv.Claim{{long.Name(), tok}},
			func(context.Context, *fencedkv.MultiTx) error { return nil }), "resource name"},
		"Put, key":      {r.Put(t.Context(), tok, key, b("v")), "key"},
		"Delete, key":   {r.Delete(t.Context(), tok, key), "key"},
		"Get, key":      {func() error { _, err := r.Get(t.Context(), key); return err }(), "key"},
		"Put, value":    {r.Put(t.Context(), tok, b("k"), value), "value"},
		"Tx.Put, key":   {inUpdate(func(tx *fencedkv.Tx) error { return tx.Put(key, nil) }), "key"},
		"Tx.Put, value": {inUpdate(func(tx *fencedkv.Tx) error { return tx.Put(b("k"), value) }), "value"},
		"Tx.Get":        {inUpdate(func(tx *fencedkv.Tx) error { _, err := tx.Get(key); return err }), "key"},
		"Tx.Delete":     {inUpdate(func(tx *fencedkv.Tx) error { return tx.Delete(key) }), "key"},
	}
	sizes := map[string][2]int{
		"resource name": {len(long.Name()), fencedkv.MaxResource},
		"key":           {len(key), fencedkv.MaxKey},
		"value":         {len(value), fencedkv.MaxValue},
	}
	for name, c := range cases {
		if !errors.Is(c.err, fencedkv.ErrTooLarge) || !errors.As(c.err, &zero) {
			t.Errorf("%s: got %v, want a *LimitError over ErrTooLarge", name, c.err)
			continue
		}
		got := *zero
		if want := (fencedkv.LimitError{What: c.what, Size: sizes[c.what][0], Limit: sizes[c.what][1]}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	wantMark(t, r, fence.Token{}) // nothing was applied
}

func TestLargestNameKeyAndValueFit(t *testing.T) {
	s := open(t, nil)
	r := s.Resource(strings.Repeat("\xff", fencedkv.MaxResource))
	key, value := bytes.Repeat([]byte{0xff}, fencedkv.MaxKey), bytes.Repeat([]byte("v"), fencedkv.MaxValue)
	must(t, r.Put(t.Context(), token(1, ""), key, value))
	got, err := r.Get(t.Context(), key)
	must(t, err)
	if !bytes.Equal(got, value) {
		t.Errorf("got %d bytes back, want the %d put", len(got), len(value))
	}
	must(t, r.View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
		n := 0
		for kv, err := range tx.Scan(fencedkv.Range{Reverse: true}) {
			must(t, err)
			if n++; !bytes.Equal(kv.Key, key) {
				t.Error("Scan found another key")
			}
		}
		if n != 1 {
			t.Errorf("Scan found %d keys, want 1", n)
		}
		return nil
	}))
}

func TestEmptyValueIsAValue(t *testing.T) {
	r := open(t, nil).Resource("r")
	must(t, r.Put(t.Context(), token(1, ""), b("k"), nil))
	got, err := r.Get(t.Context(), b("k"))
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("got %v, %v, want an empty value", got, err)
	}
}

func TestTransactionHasALimit(t *testing.T) {
	r := open(t, nil).Resource("r")
	value := make([]byte, fencedkv.MaxValue)
	err := r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		var err error
		puts := 0
		for ; err == nil; puts++ {
			err = tx.Put([]byte{byte(puts)}, value)
		}
		if most := fencedkv.MaxTransaction/fencedkv.MaxValue + 1; puts > most {
			t.Errorf("%d values went in, want an error by %d", puts, most)
		}
		return err
	})
	var limit *fencedkv.LimitError
	if !errors.As(err, &limit) || limit.What != "transaction" || limit.Limit != fencedkv.MaxTransaction {
		t.Errorf("got %v, want a *LimitError of the transaction", err)
	}
	wantMark(t, r, fence.Token{})
}

func TestBadArgumentsAreTypedErrors(t *testing.T) {
	s := open(t, nil)
	r, tok, ctx := s.Resource("r"), token(1, ""), t.Context()
	none := func(context.Context, *fencedkv.MultiTx) error { return nil }
	var zero fencedkv.Resource
	var zeroStore fencedkv.Store
	var nilResource *fencedkv.Resource
	if zeroStore.Path() != "" || zeroStore.ID() != "" {
		t.Error("a zero Store has a path or an id")
	}
	get := func(r *fencedkv.Resource, key []byte) error { _, err := r.Get(ctx, key); return err }
	highest := func(r *fencedkv.Resource) error { _, err := r.Highest(ctx); return err }

	cases := map[string]struct {
		err      error
		argument string
	}{
		"empty name":            {s.Resource("").Raise(ctx, tok), "resource name"},
		"empty name in a claim": {s.Update(ctx, []fencedkv.Claim{{"", tok}}, none), "resource name"},
		"Put, empty key":        {r.Put(ctx, tok, nil, b("v")), "key"},
		"Delete, empty key":     {r.Delete(ctx, tok, b("")), "key"},
		"Get, empty key":        {get(r, nil), "key"},
		"Update, nil function":  {r.Update(ctx, tok, nil), "function"},
		"View, nil function":    {r.View(ctx, nil), "function"},
		"Store.Update, nil":     {s.Update(ctx, []fencedkv.Claim{{"r", tok}}, nil), "function"},
		"Exclusive, nil":        {r.Exclusive(ctx, noLocker{}, nil), "function"},
		"Exclusive, no locker":  {r.Exclusive(ctx, nil, func(context.Context, *fencedkv.Held) error { return nil }), "locker"},
		"Exclusive, nil locker": {r.Exclusive(ctx, (*noLocker)(nil), func(context.Context, *fencedkv.Held) error { return nil }), "locker"},
		"no claims":             {s.Update(ctx, nil, none), "claims"},
		"duplicate claims":      {s.Update(ctx, []fencedkv.Claim{{"r", tok}, {"q", tok}, {"r", tok}}, none), "claims"},
		"zero Resource, Get":    {get(&zero, b("k")), "resource"},
		"zero Resource, Put":    {zero.Put(ctx, tok, b("k"), b("v")), "resource"},
		"zero Resource, View":   {zero.View(ctx, func(context.Context, *fencedkv.ReadTx) error { return nil }), "resource"},
		"zero Resource, Update": {zero.Update(ctx, tok, func(context.Context, *fencedkv.Tx) error { return nil }), "resource"},
		"zero Resource, mark":   {highest(&zero), "resource"},
		"zero, Exclusive":       {zero.Exclusive(ctx, noLocker{}, func(context.Context, *fencedkv.Held) error { return nil }), "resource"},
		"nil Resource":          {highest(nilResource), "resource"},
		"zero Store":            {zeroStore.Update(ctx, []fencedkv.Claim{{"r", tok}}, none), "store"},
		"zero Store, Close":     {zeroStore.Close(), "store"},
		"nil Store":             {(*fencedkv.Store)(nil).Check(ctx), "store"},
	}
	for name, call := range everyCall(s) {
		cases[name+", nil context"] = struct {
			err      error
			argument string
		}{call(noContext), "context"}
	}
	for name, c := range cases {
		var a *fencedkv.ArgumentError
		if !errors.Is(c.err, fencedkv.ErrArgument) || !errors.As(c.err, &a) || a.Argument != c.argument {
			t.Errorf("%s: got %v, want an *ArgumentError of the %s", name, c.err, c.argument)
		}
	}
	if nilResource.Name() != "" {
		t.Error("a nil Resource has a name")
	}
	wantMark(t, r, fence.Token{})
}

func TestErrorsWithoutDetailsPrintWhatTheyAre(t *testing.T) {
	for _, c := range []struct{ err, over error }{
		{&fencedkv.InUseError{Path: "a.db"}, fencedkv.ErrInUse},
		{&fencedkv.CorruptError{Path: "a.db"}, fencedkv.ErrCorrupt},
	} {
		wantIs(t, c.err, c.over)
		if got, want := c.err.Error(), c.over.Error()+": a.db"; got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}

func TestZeroTransactionsAreErrors(t *testing.T) {
	var tx fencedkv.Tx
	var rtx fencedkv.ReadTx
	var mtx fencedkv.MultiTx
	checkDone(t, &tx, &rtx, &mtx)
	checkDone(t, nil, nil, nil)
}

// checkDone wants every method of a transaction that is over to say so.
func checkDone(t *testing.T, tx *fencedkv.Tx, rtx *fencedkv.ReadTx, mtx *fencedkv.MultiTx) {
	t.Helper()
	_, get := tx.Get(b("k"))
	_, readGet := rtx.Get(b("k"))
	_, highest := rtx.Highest()
	calls := map[string]error{
		"Tx.Get": get, "Tx.Put": tx.Put(b("k"), b("v")), "Tx.Delete": tx.Delete(b("k")),
		"ReadTx.Get": readGet, "ReadTx.Highest": highest,
		"Tx.Scan": scanError(tx.Scan(fencedkv.Range{})), "ReadTx.Scan": scanError(rtx.Scan(fencedkv.Range{})),
	}
	if mtx != nil {
		inner, err := mtx.Resource("r")
		if err == nil {
			err = inner.Put(b("k"), b("v"))
		}
		calls["MultiTx"] = err
	}
	for name, err := range calls {
		if !errors.Is(err, fencedkv.ErrTxDone) {
			t.Errorf("%s on a transaction that is over: got %v, want ErrTxDone", name, err)
		}
	}
}
