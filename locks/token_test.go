package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Whoever asks a lease for its token after somebody else was granted the lock must
// not get that one's: the store would admit it.
func TestATokenBelongsToItsLeaseForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := grant(time.Second)
		lease, _ := locks.NewLease(t.Context(), old)
		waitEnd(t, lease)
		next := grant(time.Hour)
		next.Token.Seq, next.Token.Holder = old.Token.Seq+1, "next"
		successor, _ := locks.NewLease(t.Context(), next)
		same := func(when string) {
			t.Helper()
			if got := lease.Token(); got != old.Token {
				t.Errorf("%s: Token() = %v, want %v", when, got, old.Token)
			}
			if got, ok := fence.FromContext(lease.Context()); !ok || got != old.Token {
				t.Errorf("%s: the context carries %v, want %v", when, got, old.Token)
			}
		}
		same("lost, and the lock granted again")
		_ = lease.Release(t.Context())
		same("released after that")
		if got := successor.Token(); got != next.Token {
			t.Errorf("the successor's Token() = %v, want %v", got, next.Token)
		}
		_ = successor.Release(t.Context())
	})
}
