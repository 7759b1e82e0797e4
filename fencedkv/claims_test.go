package fencedkv_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// largeClaims are n claims whose marks are as large as they can be.
func largeClaims(n int, name string) []fencedkv.Claim {
	tok := token(1, strings.Repeat("%", 128))
	tok.Lineage = strings.Repeat("%", 256)
	claims := make([]fencedkv.Claim, n)
	for i := range claims {
		claims[i] = fencedkv.Claim{Resource: fmt.Sprintf("%s-%0*d", name, fencedkv.MaxResource-1-len(name), i), Token: tok}
	}
	return claims
}

const leastLargeClaim = 512 + 3*(256+128) // what one counts, at least

func TestClaimsCountInTheLimitOfATransaction(t *testing.T) {
	s := open(t, nil)
	claims := largeClaims(fencedkv.MaxTransaction/leastLargeClaim+1, "r")
	ran := false
	err := s.Update(t.Context(), claims, func(context.Context, *fencedkv.MultiTx) error {
		ran = true
		return nil
	})
	var limit *fencedkv.LimitError
	if !errors.As(err, &limit) || !errors.Is(err, fencedkv.ErrTooLarge) || limit.Limit != fencedkv.MaxTransaction || limit.Size <= limit.Limit {
		t.Errorf("got %v, want a *LimitError of the transaction", err)
	}
	if ran {
		t.Error("the function ran")
	}
	wantMark(t, s.Resource(claims[0].Resource), fence.Token{})
}

func TestNamesOfResourcesCountInTheLimitOfATransaction(t *testing.T) {
	name := strings.Repeat("r", fencedkv.MaxResource)
	writes := 0
	err := open(t, nil).Resource(name).Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for ; writes <= fencedkv.MaxTransaction/fencedkv.MaxResource; writes++ {
			key := fmt.Appendf(nil, "%06d", writes)
			if err := tx.Put(key, nil); err != nil {
				return err
			}
			if err := tx.Put(key, nil); err != nil { // which adds nothing
				return err
			}
		}
		return nil
	})
	wantIs(t, err, fencedkv.ErrTooLarge)
	if least := fencedkv.MaxTransaction / (fencedkv.MaxResource + 100); writes < least {
		t.Errorf("%d writes are too large, want %d to be within the limit", writes, least)
	}
}

// TestClaimsBoundABatch has Updates wait whose claims are, two at a time, more than
// a batch takes.
func TestClaimsBoundABatch(t *testing.T) {
	const each, batch = 24_000, 64 << 20
	if each*leastLargeClaim > batch || 2*each*leastLargeClaim < batch {
		t.Fatal("the claims do not have the size that the test needs")
	}
	synctest.Test(t, func(t *testing.T) {
		commits := 0
		s := openCommit(t, func(tx *bbolt.Tx) error { commits++; return tx.Commit() })
		nothing := func(context.Context, *fencedkv.MultiTx) error { return nil }
		var queued []*pending
		whileHeld(t, s, func() {
			commits = 0
			for i := range 2 {
				queued = append(queued, queue(func() error {
					return s.Update(t.Context(), largeClaims(each, fmt.Sprint(i)), nothing)
				}))
			}
		})
		for _, p := range queued {
			must(t, p.wait())
		}
		if commits != 3 { // that of the function that held, and one for each
			t.Errorf("%d commits, want 3", commits)
		}
	})
}
