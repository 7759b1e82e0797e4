package device_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// subject is a store under test: ours, or a control.
type subject interface {
	do(step) error
	// read reads the keys before end, if end is not empty.
	read(resource, end string) (content, error)
	check() error
	close() error
}

type opener func(path string) (subject, error)

// ours is the store that the tests are for.
type ours struct{ *fencedkv.Store }

func openOurs(path string) (subject, error) {
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		return nil, err
	}
	return ours{s}, nil
}

var errOwn = errors.New("the function does not want it")

func (c claim) token() fence.Token {
	holder := c.holder
	if holder == "" {
		holder = fmt.Sprint("holder-", c.seq)
	}
	return fence.Token{Lineage: "l", Seq: c.seq, Holder: holder}
}

// target is a transaction on one resource.
type target interface {
	Put(key, value []byte) error
	Delete(key []byte) error
}

func (w write) make(tx target) error {
	if w.remove {
		return tx.Delete([]byte(w.key))
	}
	return tx.Put([]byte(w.key), []byte(w.value))
}

func (s ours) do(st step) error {
	ctx, c := context.Background(), st.claims[0]
	r := s.Resource(c.resource)
	switch st.call {
	case raise:
		return r.Raise(ctx, c.token())
	case put:
		return r.Put(ctx, c.token(), []byte(st.writes[0].key), []byte(st.writes[0].value))
	case remove:
		return r.Delete(ctx, c.token(), []byte(st.writes[0].key))
	case update:
		return r.Update(ctx, c.token(), func(_ context.Context, tx *fencedkv.Tx) error {
			for _, w := range st.writes {
				if err := w.make(tx); err != nil {
					return err
				}
			}
			if st.want == ownError {
				return errOwn
			}
			return nil
		})
	}
	var claims []fencedkv.Claim
	for _, c := range slices.Backward(st.claims) {
		claims = append(claims, fencedkv.Claim{Resource: c.resource, Token: c.token()})
	}
	return s.Update(ctx, claims, func(_ context.Context, tx *fencedkv.MultiTx) error {
		for _, w := range st.writes {
			one, err := tx.Resource(w.resource)
			if err == nil {
				err = w.make(one)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s ours) read(resource, end string) (c content, err error) {
	ctx := context.Background()
	err = s.Resource(resource).View(ctx, func(_ context.Context, tx *fencedkv.ReadTx) error {
		m, err := tx.Highest()
		if err != nil {
			return err
		}
		c = content{m.Seq, m.Holder, map[string]string{}}
		for kv, err := range tx.Scan(fencedkv.Range{End: []byte(end)}) {
			if err != nil {
				return err
			}
			c.values[string(kv.Key)] = string(kv.Value)
		}
		return nil
	})
	return c, err
}

func (s ours) check() error { return s.Check(context.Background()) }
func (s ours) close() error { return s.Close() }

// told is the class of what a caller was told.
func told(err error) string {
	switch rejected := (*fence.RejectedError)(nil); {
	case err == nil:
		return applied
	case errors.Is(err, fencedkv.ErrUnknownOutcome) && errors.Is(err, fencedkv.ErrFailed):
		return "both ErrUnknownOutcome and ErrFailed"
	case errors.Is(err, fencedkv.ErrUnknownOutcome):
		return unknown
	case errors.Is(err, fencedkv.ErrFailed):
		return lost
	case errors.As(err, &rejected):
		return refused
	case errors.Is(err, errOwn):
		return ownError
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return noRoom
	}
	return err.Error()
}

// readWorld reads everything.
func readWorld(s subject) (world, error) {
	w := world{}
	for _, r := range resources {
		c, err := s.read(r, "")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r, err)
		}
		w[r] = c
	}
	return w, nil
}

// refusedBy is the number of the mark that a refusal names.
func refusedBy(err error) uint64 {
	if rejected := (*fence.RejectedError)(nil); errors.As(err, &rejected) {
		return rejected.Mark.Seq
	}
	return 0
}
