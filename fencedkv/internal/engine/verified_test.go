package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

func openVerified(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Open(filepath.Join(t.TempDir(), "e.db"), engine.Options{Logger: hclog.NewNullLogger(), Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func wantSeq(t *testing.T, e *engine.Engine, resource string, want uint64) {
	t.Helper()
	m, _, _ := e.Raises(engine.Claim{Resource: resource, Token: fence.Number(1)})
	if m.Seq != want {
		t.Errorf("the mark of %q is %v, want %d", resource, m, want)
	}
}

func wantUnanswered(t *testing.T, err error, resource string) {
	t.Helper()
	u, ok := errors.AsType[*engine.UnansweredError](err)
	if !ok || u.Claim.Resource != resource {
		t.Fatalf("got %v, want that %q is unanswered", err, resource)
	}
}

// Whatever was known when a Tx came, the mark that counts is the one that the
// committer finds.
func TestNoMarkIsRaisedWithoutAnAnswer(t *testing.T) {
	e := openVerified(t)
	functions := 0
	function := func(*engine.Tx) error { functions++; return nil }
	for name, fn := range map[string]func(*engine.Tx) error{"alone": nil, "with a function": function} {
		tx := engine.NewTx(engine.Claim{Resource: "r", Token: fence.Number(3)})
		if err := tx.Put("r", []byte("k"), []byte("v")); err != nil {
			t.Fatal(err)
		}
		_, err := e.Do(context.Background(), tx, fn)
		wantUnanswered(t, err, "r")
		wantSeq(t, e, "r", 0)
		if functions != 0 {
			t.Errorf("%s: the function ran without an answer", name)
		}
	}

	// Answered, the same Tx is applied.
	tx := engine.NewTx(engine.Claim{Resource: "r", Token: fence.Number(3)})
	if err := tx.Put("r", []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	_, err := e.Do(context.Background(), tx, nil)
	wantUnanswered(t, err, "r")
	tx.Verified(0)
	if _, err := e.Do(context.Background(), tx, nil); err != nil {
		t.Fatal(err)
	}
	wantSeq(t, e, "r", 3)
	if v, err := e.Get("r", []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("Get = %q, %v, want what the answered Tx wrote", v, err)
	}
	// What raises nothing needs no answer; what is refused gets its refusal.
	if _, err := e.Do(context.Background(), engine.NewTx(engine.Claim{Resource: "r", Token: fence.Number(3)}), nil); err != nil {
		t.Errorf("an equal token: %v", err)
	}
	if _, err := e.Do(context.Background(), engine.NewTx(engine.Claim{Resource: "r", Token: fence.Number(2)}), nil); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a stale token: got %v, want ErrStale", err)
	}
}

func TestAnAnswerIsForItsClaimOnly(t *testing.T) {
	e := openVerified(t)
	tx := engine.NewTx(engine.Claim{Resource: "a", Token: fence.Number(1)}, engine.Claim{Resource: "b", Token: fence.Number(1)})
	tx.Verified(0)
	_, err := e.Do(context.Background(), tx, nil)
	wantUnanswered(t, err, "b")
	wantSeq(t, e, "a", 0)
	wantSeq(t, e, "b", 0)
	tx.Verified(1)
	if _, err := e.Do(context.Background(), tx, nil); err != nil {
		t.Fatal(err)
	}
	wantSeq(t, e, "a", 1)
	wantSeq(t, e, "b", 1)
}
