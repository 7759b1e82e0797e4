package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

func attempt(id string) memlock.Attempt {
	return memlock.Attempt{Name: "job", ID: id, TTL: time.Second, Queue: true}
}

func take(t *testing.T, s *memlock.Server, a memlock.Attempt) fence.Token {
	t.Helper()
	token, err := s.Take(t.Context(), a)
	if err != nil {
		t.Fatalf("Take by %s: %v", a.ID, err)
	}
	return token
}

func queue(t *testing.T, s *memlock.Server, id string) {
	t.Helper()
	if _, err := s.Take(t.Context(), attempt(id)); !errors.Is(err, locks.ErrHeld) {
		t.Fatalf("Take by %s of a held lock: got %v, want ErrHeld", id, err)
	}
}

func ids(s *memlock.Server) []string {
	var all []string
	for _, e := range s.Entries("job") {
		all = append(all, e.ID)
	}
	return all
}

func TestRepeatedTakeReturnsTheSameTokenAndStartsTheLeaseTimeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		first := take(t, s, attempt("a"))
		time.Sleep(900 * time.Millisecond)
		if second := take(t, s, attempt("a")); second != first {
			t.Errorf("the repeated Take got %v, want %v", second, first)
		}
		time.Sleep(900 * time.Millisecond)
		if got := ids(s); !slices.Equal(got, []string{"a"}) {
			t.Errorf("entries after the first lease time: got %v, want [a]", got)
		}
		time.Sleep(101 * time.Millisecond)
		if got := ids(s); len(got) != 0 {
			t.Errorf("entries after the second lease time: got %v, want none", got)
		}
	})
}

func TestGrantsAreFirstComeFirstServed(t *testing.T) {
	s := memlock.NewServer(&memlock.ServerOptions{First: 33})
	if got := take(t, s, attempt("a")).Seq; got != 33 {
		t.Errorf("the first number is %d, want 33", got)
	}
	order := []string{"b", "c", "d"}
	for _, id := range order {
		queue(t, s, id)
	}
	holder := "a"
	for i, id := range order {
		if err := s.Release(t.Context(), "job", holder); err != nil {
			t.Fatal(err)
		}
		now := s.Entries("job")[0]
		if now.ID != id || now.Token.Seq != uint64(34+i) || now.Token.Holder != id {
			t.Errorf("after %s the lock went to %v, want %s with %d", holder, now, id, 34+i)
		}
		holder = id
	}
}

func TestNumbersDoNotStartAgainWhenTheyAreUsedUp(t *testing.T) {
	s := memlock.NewServer(&memlock.ServerOptions{First: memlock.MaxNumber})
	first := take(t, s, attempt("a")).Seq
	if first != memlock.MaxNumber {
		t.Errorf("the first number is %d, want %d", first, memlock.MaxNumber)
	}
	if _, err := s.Take(t.Context(), attempt("b")); !errors.Is(err, locks.ErrUnsupported) {
		t.Errorf("Take after the last number: got %v, want ErrUnsupported", err)
	}
	if got := take(t, s, attempt("a")).Seq; got != first {
		t.Errorf("the repeated Take of the last holder got %d, want %d", got, first)
	}
	l, err := s.NewLocker(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(t.Context(), "other"); !errors.Is(err, locks.ErrUnsupported) {
		t.Errorf("Acquire after the last number: got %v, want ErrUnsupported", err)
	}
}

func TestTryDoesNotOvertakeWaiters(t *testing.T) {
	s := memlock.NewServer(nil)
	take(t, s, attempt("a"))
	queue(t, s, "b")
	if err := s.Release(t.Context(), "job", "a"); err != nil {
		t.Fatal(err)
	}
	c := attempt("c")
	c.Queue = false
	if _, err := s.Take(t.Context(), c); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("Take without queueing: got %v, want ErrHeld", err)
	}
	if got := ids(s); !slices.Equal(got, []string{"b"}) {
		t.Errorf("entries: got %v, want [b]", got)
	}
}

func TestHolderThatDoesNotRenewIsSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		take(t, s, attempt("a"))
		queue(t, s, "b")
		started := time.Now()
		if err := s.Wait(t.Context(), "job", "b"); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(started); got != time.Second {
			t.Errorf("the lock was granted after %v, want 1s", got)
		}
		if err := s.Renew(t.Context(), "job", "a", time.Second); !errors.Is(err, locks.ErrLost) {
			t.Errorf("renewal of a lock that ran out: got %v, want ErrLost", err)
		}
		if err := s.Release(t.Context(), "job", "a"); !errors.Is(err, locks.ErrLost) {
			t.Errorf("release of a lock that ran out: got %v, want ErrLost", err)
		}
		if got := ids(s); !slices.Equal(got, []string{"b"}) {
			t.Errorf("entries: got %v, want [b]", got)
		}
	})
}

func TestWaiterKeepsItsPlaceWhileItWaitsAndOneLeaseTimeAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		long := attempt("a")
		long.TTL = time.Hour
		take(t, s, long)
		queue(t, s, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Wait(ctx, "job", "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait whose context ends: got %v, want DeadlineExceeded", err)
		}
		if got := ids(s); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("entries after the wait: got %v, want [a b]", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ids(s); !slices.Equal(got, []string{"a"}) {
			t.Errorf("entries a lease time later: got %v, want [a]", got)
		}
		if err := s.Wait(t.Context(), "job", "b"); !errors.Is(err, locks.ErrLost) {
			t.Errorf("Wait without a place: got %v, want ErrLost", err)
		}
	})
}

func TestDeadWaiterCostsOneLeaseTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		take(t, s, attempt("a"))
		queue(t, s, "dead")
		queue(t, s, "c")
		if err := s.Release(t.Context(), "job", "a"); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		if err := s.Wait(t.Context(), "job", "c"); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(started); got != time.Second {
			t.Errorf("the next waiter had to wait %v, want 1s", got)
		}
	})
}

func TestRemovedWaiterLearnsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewServer(nil)
		take(t, s, attempt("a"))
		queue(t, s, "b")
		done := make(chan error)
		go func() { done <- s.Wait(t.Context(), "job", "b") }()
		synctest.Wait()
		if err := s.Release(t.Context(), "job", "b"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, locks.ErrLost) {
			t.Errorf("Wait: got %v, want ErrLost", err)
		}
	})
}

func TestLateTakeOfAnEndedAttemptIsRefused(t *testing.T) {
	s := memlock.NewServer(nil)
	if err := s.Release(t.Context(), "job", "overtaken"); !errors.Is(err, locks.ErrLost) {
		t.Errorf("Release of an attempt that has not arrived: got %v, want ErrLost", err)
	}
	take(t, s, attempt("a"))
	if err := s.Release(t.Context(), "job", "a"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "overtaken"} {
		if _, err := s.Take(t.Context(), attempt(id)); !errors.Is(err, locks.ErrLost) {
			t.Errorf("late Take by %s: got %v, want ErrLost", id, err)
		}
	}
	if got := ids(s); len(got) != 0 {
		t.Errorf("entries: got %v, want none", got)
	}
}

func TestMemoryOfEndedAttemptsIsBounded(t *testing.T) {
	s := memlock.NewServer(nil)
	for i := range 10_000 {
		a := attempt(fmt.Sprint("id", i))
		take(t, s, a)
		if err := s.Release(t.Context(), "job", a.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Take(t.Context(), attempt("id9999")); !errors.Is(err, locks.ErrLost) {
		t.Errorf("the last attempt is not remembered: got %v, want ErrLost", err)
	}
	take(t, s, attempt("id0"))
}

func TestExpireHandsTheLockOn(t *testing.T) {
	s := memlock.NewServer(nil)
	if s.Expire("job") {
		t.Error("Expire of a free lock: got true, want false")
	}
	take(t, s, attempt("a"))
	queue(t, s, "b")
	if !s.Expire("job") {
		t.Error("Expire of a held lock: got false, want true")
	}
	if err := s.Renew(t.Context(), "job", "a", time.Second); !errors.Is(err, locks.ErrLost) {
		t.Errorf("renewal after Expire: got %v, want ErrLost", err)
	}
	if err := s.Wait(t.Context(), "job", "b"); err != nil {
		t.Errorf("Wait after Expire: %v", err)
	}
}

func TestEveryServerAndEveryNameIsALineage(t *testing.T) {
	one, two := memlock.NewServer(nil), memlock.NewServer(nil)
	other := attempt("b")
	other.Name = "other"
	long := attempt("c")
	long.Name = strings.Repeat("n", locks.MaxName)
	seen := make(map[string]bool)
	for _, token := range []fence.Token{
		take(t, one, attempt("a")), take(t, one, other), take(t, one, long), take(t, two, attempt("a")), take(t, two, other),
	} {
		if err := token.Validate(); err != nil {
			t.Errorf("token %v: %v", token, err)
		}
		if seen[token.Lineage] {
			t.Errorf("two numberings have the lineage %q", token.Lineage)
		}
		seen[token.Lineage] = true
	}
	named := memlock.NewServer(&memlock.ServerOptions{ID: "demo"})
	if got, want := take(t, named, attempt("a")).Lineage, "mem:demo:job"; got != want {
		t.Errorf("lineage: got %q, want %q", got, want)
	}
}

func TestServerRefusesBadRequests(t *testing.T) {
	s := memlock.NewServer(nil)
	noName, noID, noTTL := attempt("a"), attempt(""), attempt("a")
	noName.Name, noTTL.TTL = "", 0
	for _, c := range []struct {
		a    memlock.Attempt
		want error
	}{{noName, locks.ErrBadName}, {noID, locks.ErrBadOption}, {noTTL, locks.ErrBadOption}} {
		if _, err := s.Take(t.Context(), c.a); !errors.Is(err, c.want) {
			t.Errorf("Take(%+v): got %v, want %v", c.a, err, c.want)
		}
	}
	if err := s.Renew(t.Context(), "job", "a", 0); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("Renew for no time: got %v, want ErrBadOption", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx, attempt("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Take with a cancelled context: got %v, want Canceled", err)
	}
	if err := s.Renew(ctx, "job", "a", time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("Renew with a cancelled context: got %v, want Canceled", err)
	}
}
