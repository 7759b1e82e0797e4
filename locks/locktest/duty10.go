package locktest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fencedkv/fencedkv/locks"
)

const (
	sayWhich = "Errors say which of held, lost, unreachable, cancelled it was."
	findBoth = "errors.Is finds both ours and ctx.Err()."
)

var errorsSayWhich = []part{
	{"held", sayWhich, "", errorHeld},
	{"cancelled", findBoth, "", errorCancelled},
	{"timed-out", findBoth, "", errorTimedOut},
	{"cancelled-before", findBoth, "", errorCancelledBefore},
	{"unreachable", sayWhich, "Cut", errorUnreachable},
	{"lost", sayWhich, "Cut", errorLost},
	{"bad-options", "Options that the service cannot keep are errors.", "BadOptions", badOptions},
	{"secret", "Passwords in addresses are never printed.", "Secret", secret},
}

var kinds = []error{locks.ErrHeld, locks.ErrLost, locks.ErrReleased, locks.ErrUnreachable, locks.ErrCancelled,
	locks.ErrClosed, locks.ErrBadName, locks.ErrBadOption, locks.ErrUnsupported}

// is demands that err is over all of want and over no other kind of ours.
func (k *kit) is(err error, when string, want ...error) {
	k.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			k.broken("%s: errors.Is does not find %q in %q", when, w, fmt.Sprint(err))
		}
	}
	var e *locks.Error
	if !errors.As(err, &e) {
		k.broken("%s: got %T, want a *locks.Error: %v", when, err, err)
	}
next:
	for _, kind := range kinds {
		for _, w := range want {
			if errors.Is(w, kind) {
				continue next
			}
		}
		if errors.Is(err, kind) {
			k.broken("%s: errors.Is also finds %q in %q", when, kind, fmt.Sprint(err))
		}
	}
}

func errorHeld(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	lease := k.acquire(a, lock)
	_, err := k.try(b, lock)
	k.is(err, "TryAcquire of a held lock", locks.ErrHeld)
	if !strings.Contains(fmt.Sprint(err), lock) {
		k.broken("the error does not name the lock: %v", err)
	}
	k.release(lease)
}

func errorCancelled(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	lease := k.acquire(a, lock)
	k.held(b, lock)
	why := errors.New("the caller's reason")
	ctx, cancel := context.WithCancelCause(context.Background())
	before := k.requests()
	waiter := start(ctx, b.Acquire, lock)
	k.seenHeld(before)
	k.queued(lock, 2)
	cancel(why)
	o := k.result(waiter, "its context was cancelled")
	k.is(o.err, "Acquire that was cancelled while another held the lock", locks.ErrCancelled, context.Canceled, locks.ErrHeld, why)
	k.release(lease)
}

// requests is how many all clients have made, 0 if the service does not tell.
func (k *kit) requests() int {
	if k.Requests == nil {
		return 0
	}
	return k.Requests()
}

// seenHeld gives a waiter the time to learn that the lock is held. That cannot
// be seen from outside: its entry is there before the answer has reached it. But
// then it goes on asking, to watch or to poll, which ends the time early: it makes
// its entry, looks where it stands, and watches, and the holder may renew beside it.
func (k *kit) seenHeld(before int) {
	k.within(k.TTL/2, func() bool { return k.requests() > before+3 })
}

func errorTimedOut(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	lease := k.acquire(a, lock)
	k.held(b, lock)
	ctx, cancel := context.WithTimeout(context.Background(), k.TTL)
	defer cancel()
	o := k.result(start(ctx, b.Acquire, lock), "its deadline")
	k.is(o.err, "Acquire whose deadline passed while another held the lock",
		locks.ErrCancelled, context.DeadlineExceeded, locks.ErrHeld)
	k.release(lease)
}

func errorCancelledBefore(k *kit) {
	a := k.locker(k.long())
	k.free(a, lock)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, take := range []takes{a.Acquire, a.TryAcquire} {
		_, err := take(ctx, lock)
		k.is(err, "a call with a cancelled context", locks.ErrCancelled, context.Canceled)
	}
}

func errorUnreachable(k *kit) {
	a := k.locker(Config{})
	k.free(a, lock)
	k.cut(a)
	_, err := k.try(a, lock)
	if err == nil || !errors.Is(err, locks.ErrUnreachable) || errors.Is(err, locks.ErrHeld) || errors.Is(err, locks.ErrLost) {
		k.broken("TryAcquire by a client that is cut off: got %v, want an error over locks.ErrUnreachable", err)
	}
}

func errorLost(k *kit) {
	a := k.locker(Config{})
	lease := k.acquire(a, lock)
	heal := k.cut(a)
	k.ends(lease)
	heal()
	k.is(context.Cause(lease.Context()), "the cause of a lease whose time is over", locks.ErrLost)
	k.is(k.releaseWith(context.Background(), lease), "Release of a lease whose time is over", locks.ErrLost)
}

func badOptions(k *kit) {
	for name, make := range k.BadOptions {
		l, err := make()
		if !errors.Is(err, locks.ErrBadOption) {
			k.Errorf("the contract says: %s\n\tseen instead: %s: got %v, want an error over locks.ErrBadOption", k.rule, name, err)
		}
		if l != nil && err == nil {
			_ = l.Close(context.Background())
		}
	}
}

func secret(k *kit) {
	for _, password := range []string{"open-sesame-4711", "p@ss:w/ö%r?d#4711"} {
		err := k.Secret(k.T, password)
		if err == nil {
			k.broken("a Locker to an address that nobody serves works")
		}
		for _, text := range []string{fmt.Sprintf("%v", err), fmt.Sprintf("%+v", err), fmt.Sprintf("%q", err)} {
			for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password), url.UserPassword("", password).String()[1:]} {
				if strings.Contains(text, form) {
					k.broken("the password stands in the error %s", text)
				}
			}
		}
	}
}
