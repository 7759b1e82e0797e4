package locks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

func TestNamesAreOneToFourThousandNinetySixBytes(t *testing.T) {
	for _, name := range []string{"a", "a/b", "a%2Fb", "{a}", "\x00", "\xff", "名前", strings.Repeat("n", 4096)} {
		if err := locks.CheckName(name); err != nil {
			t.Errorf("CheckName(%.20q) = %v, want nil", name, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("n", 4097)} {
		err := locks.CheckName(name)
		if !errors.Is(err, locks.ErrBadName) || !strings.Contains(err.Error(), "4096") || len(err.Error()) > 300 {
			t.Errorf("CheckName of %d bytes = %v, want a short error over ErrBadName that names the limit", len(name), err)
		}
	}
}

func TestLineagesOfLongIdentitiesStayApart(t *testing.T) {
	if got := locks.Lineage("redis", "p:n"); got != "redis:p:n" {
		t.Errorf("Lineage = %q, want redis:p:n", got)
	}
	seen := map[string]string{}
	for _, identity := range []string{
		strings.Repeat("n", 250), strings.Repeat("n", 251), strings.Repeat("n", 4096),
		strings.Repeat("n", 4095) + "m", "m" + strings.Repeat("n", 4095),
	} {
		lineage := locks.Lineage("redis", identity)
		if len(lineage) > fence.MaxLineage {
			t.Errorf("the lineage of %d bytes has %d, over the limit", len(identity), len(lineage))
		}
		if other, ok := seen[lineage]; ok {
			t.Errorf("two identities of %d and %d bytes share a lineage", len(identity), len(other))
		}
		seen[lineage] = identity
	}
	for lineage := range seen {
		// A lock may be named like what a cut lineage looks like.
		if like := strings.TrimPrefix(lineage, "redis:"); like != seen[lineage] && locks.Lineage("redis", like) == lineage {
			t.Errorf("the identity %q shares the lineage of a longer one", like)
		}
	}
}

func TestHoldersAreUniqueAndFit(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		h := locks.NewHolder()
		if seen[h] || len(h) > fence.MaxHolder || h == "" {
			t.Fatalf("holder %q: seen before %v, %d bytes", h, seen[h], len(h))
		}
		seen[h] = true
		if text := (fence.Token{Seq: 1, Holder: h}).String(); text != "1~"+h {
			t.Fatalf("holder %q needs encoding: %q", h, text)
		}
	}
}

func TestValidityIsShorterThanTheLeaseTime(t *testing.T) {
	if got, want := locks.Validity(time.Second), 988*time.Millisecond; got != want {
		t.Errorf("Validity(1s) = %v, want %v", got, want)
	}
	if got := locks.Validity(2 * time.Millisecond); got > 0 {
		t.Errorf("Validity(2ms) = %v, want none", got)
	}
}

func TestCancelledKeepsEveryTruth(t *testing.T) {
	why := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := locks.Cancelled(ctx, "jobs", locks.ErrHeld)
	for _, want := range []error{locks.ErrCancelled, context.Canceled, why, locks.ErrHeld} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not over %v", err, want)
		}
	}
	if errors.Is(err, locks.ErrLost) {
		t.Errorf("%v is over ErrLost", err)
	}
	for _, want := range []string{`"jobs"`, "cancelled", "shutting down", "held by another"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the text %q does not say %q", err, want)
		}
	}
	why = fmt.Errorf("shutting down: %w", context.Canceled)
	over, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := locks.Cancelled(over, "jobs", nil); !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not over the cause %v", err, why)
	}
	if err := locks.Cancelled(ctx, "jobs", nil); errors.Is(err, locks.ErrHeld) {
		t.Errorf("%v is over ErrHeld, which nobody saw", err)
	}
}

func TestErrorPrintsWithoutItsParts(t *testing.T) {
	if got := (&locks.Error{Op: "acquire"}).Error(); !strings.Contains(got, "acquire") {
		t.Errorf("text %q, want the operation in it", got)
	}
	if got := (&locks.Error{Op: "close", Kind: locks.ErrCancelled}).Error(); strings.Contains(got, `""`) {
		t.Errorf("text %q names a lock without a name", got)
	}
}
