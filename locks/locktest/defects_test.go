package locktest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/internal/wire"
	"github.com/fencedkv/fencedkv/locks/locktest"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// defect is one way in which a Locker can break the contract.
type defect struct {
	what  string
	fails []string // exactly these subtests, as duty/part without their words
	make  func() *locktest.Service
}

// broken is a Backend of which some calls are replaced.
type broken struct {
	memlock.Backend
	take    func(ctx context.Context, a memlock.Attempt) (fence.Token, error)
	wait    func(ctx context.Context, name, id string) error
	renew   func(ctx context.Context, name, id string, ttl time.Duration) error
	release func(ctx context.Context, name, id string) error
}

func (b *broken) Take(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
	if b.take == nil {
		return b.Backend.Take(ctx, a)
	}
	return b.take(ctx, a)
}

func (b *broken) Wait(ctx context.Context, name, id string) error {
	if b.wait == nil {
		return b.Backend.Wait(ctx, name, id)
	}
	return b.wait(ctx, name, id)
}

func (b *broken) Renew(ctx context.Context, name, id string, ttl time.Duration) error {
	if b.renew == nil {
		return b.Backend.Renew(ctx, name, id, ttl)
	}
	return b.renew(ctx, name, id, ttl)
}

func (b *broken) Release(ctx context.Context, name, id string) error {
	if b.release == nil {
		return b.Backend.Release(ctx, name, id)
	}
	return b.release(ctx, name, id)
}

// backend makes a Service in which f breaks the Backend of each Locker.
func backend(f func(n *wire.Net, b *broken)) func() *locktest.Service {
	return func() *locktest.Service {
		return service(wire.Wrap{Backend: func(n *wire.Net, inner memlock.Backend) memlock.Backend {
			b := &broken{Backend: inner}
			f(n, b)
			return b
		}})
	}
}

// token makes a Service in which f changes the token of every grant; it is
// made anew for each Locker.
func token(f func() func(*fence.Token)) func() *locktest.Service {
	return backend(func(_ *wire.Net, b *broken) {
		change := f()
		b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
			t, err := b.Backend.Take(ctx, a)
			if err == nil {
				change(&t)
			}
			return t, err
		}
	})
}

// brokenLocker is a Locker of which some calls are replaced.
type brokenLocker struct {
	locks.Locker
	acquire func(ctx context.Context, name string) (*locks.Lease, error)
	try     func(ctx context.Context, name string) (*locks.Lease, error)
	close   func(ctx context.Context) error
}

func (l *brokenLocker) Acquire(ctx context.Context, name string) (*locks.Lease, error) {
	if l.acquire == nil {
		return l.Locker.Acquire(ctx, name)
	}
	return l.acquire(ctx, name)
}

func (l *brokenLocker) TryAcquire(ctx context.Context, name string) (*locks.Lease, error) {
	if l.try == nil {
		return l.Locker.TryAcquire(ctx, name)
	}
	return l.try(ctx, name)
}

func (l *brokenLocker) Close(ctx context.Context) error {
	if l.close == nil {
		return l.Locker.Close(ctx)
	}
	return l.close(ctx)
}

// locker makes a Service in which f breaks each Locker.
func locker(f func(*brokenLocker)) func() *locktest.Service {
	return func() *locktest.Service {
		return service(wire.Wrap{Locker: func(inner locks.Locker) locks.Locker {
			l := &brokenLocker{Locker: inner}
			f(l)
			return l
		}})
	}
}

var defects = []defect{
	{"each client counts by itself",
		[]string{"01/after-expiry", "01/across-clients", "01/from-waiter-to-waiter", "01/across-restart-own-server"},
		token(func() func(*fence.Token) {
			var mu sync.Mutex
			seqs := make(map[uint64]uint64) // a repeated request has the same answer
			return func(t *fence.Token) {
				mu.Lock()
				defer mu.Unlock()
				if seqs[t.Seq] == 0 {
					seqs[t.Seq] = uint64(len(seqs) + 1)
				}
				t.Seq = seqs[t.Seq]
			}
		})},
	{"numbers start again with the service",
		[]string{"01/across-restart-own-server"},
		func() *locktest.Service {
			var highest, forgotten atomic.Uint64
			s := token(func() func(*fence.Token) {
				return func(t *fence.Token) {
					highest.Store(t.Seq)
					t.Seq -= forgotten.Load()
				}
			})()
			restart := s.Restart
			s.Restart = func(t testing.TB) {
				restart(t)
				forgotten.Store(highest.Load())
			}
			return s
		}},
	{"numbers start again when the lock is free",
		[]string{"01/after-release", "01/after-expiry", "01/across-clients", "01/across-restart-own-server"},
		startAgainWhenFree},
	{"the lease's context forgets the caller's values",
		[]string{"01/token-is-constant"},
		locker(func(l *brokenLocker) {
			l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
				ctx, cancel := withoutValues(ctx)
				defer cancel()
				return l.Locker.Acquire(ctx, name)
			}
		})},
	{"one lineage for all locks",
		[]string{"01/one-lineage"},
		token(func() func(*fence.Token) {
			return func(t *fence.Token) { t.Lineage, _, _ = strings.Cut(t.Lineage, ":") }
		})},
	{"one holder id per client",
		[]string{"01/holder-is-unique"},
		token(func() func(*fence.Token) {
			id := locks.NewHolder()
			return func(t *fence.Token) { t.Holder = id }
		})},
	{"a repeated request is a new attempt",
		[]string{"02/lost-reply", "02/try-after-lost-reply"},
		backend(newIDPerRepeat)},
	{"a waiter that gives up leaves its entry",
		[]string{"03/cancelled-while-waiting", "03/cancelled-at-the-grant", "03/closed-while-waiting", "03/timed-out"},
		backend(leaveWaiters)},
	{"a context that has ended is noticed too late",
		[]string{"03/cancelled-before"},
		locker(func(l *brokenLocker) {
			l.try = func(ctx context.Context, name string) (*locks.Lease, error) {
				if ctx.Err() == nil {
					return l.Locker.TryAcquire(ctx, name)
				}
				_, _ = l.Locker.TryAcquire(context.WithoutCancel(ctx), name)
				return nil, locks.Cancelled(ctx, name, nil)
			}
		})},
	{"the first request has no timeout",
		[]string{"03/cut-off-while-taking", "03/silent-service-own-server"},
		backend(func(_ *wire.Net, b *broken) {
			var sent sync.Map
			b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
				if _, again := sent.LoadOrStore(a.ID, true); !again && a.Queue {
					ctx = context.WithoutCancel(ctx)
				}
				return b.Backend.Take(ctx, a)
			}
		})},
	{"no cleanup after a lost reply",
		[]string{"03/lost-reply-then-cancelled"},
		backend(leaveUnheard)},
	{"the entry is not checked after the wait",
		[]string{"04/waiters-deleted", "04/waiters-deleted-lock-taken"},
		backend(trustTheWait)},
	{"release deletes whatever is there",
		[]string{"05/replaced-by-another", "05/expired-and-succeeded"},
		backend(releaseAnybody)},
	{"release has no timeout",
		[]string{"05/own-timeout"},
		backend(func(_ *wire.Net, b *broken) {
			b.release = func(ctx context.Context, name, id string) error {
				return b.Backend.Release(context.WithoutCancel(ctx), name, id)
			}
		})},
	{"the service is told less than the lease time",
		[]string{"06/before-the-next-grant"},
		backend(func(_ *wire.Net, b *broken) {
			b.take = func(ctx context.Context, a memlock.Attempt) (fence.Token, error) {
				a.TTL = a.TTL * 17 / 20
				return b.Backend.Take(ctx, a)
			}
			b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
				return b.Backend.Renew(ctx, name, id, ttl*17/20)
			}
		})},
	{"renewal does not look whose entry it is",
		[]string{"06/entry-replaced"},
		backend(renewAnybody)},
	{"renewal does not notice that the entry is gone",
		[]string{"06/entry-deleted", "06/revoked"},
		backend(func(n *wire.Net, b *broken) {
			b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
				err := b.Backend.Renew(ctx, name, id, ttl)
				if errors.Is(err, locks.ErrLost) && len(n.Server.Entries(name)) == 0 {
					return nil
				}
				return err
			}
		})},
	{"one failed renewal is loss",
		[]string{"06/one-failed-renewal"},
		backend(func(_ *wire.Net, b *broken) {
			b.renew = func(ctx context.Context, name, id string, ttl time.Duration) error {
				err := b.Backend.Renew(ctx, name, id, ttl)
				if err != nil {
					err = errors.Join(locks.ErrLost, err)
				}
				return err
			}
		})},
	{"renewal creates the entry again",
		[]string{"07/never-recreates"},
		backend(recreate)},
	{"renewal ends after three times",
		[]string{"07/renewal-keeps"},
		backend(renewThreeTimes)},
	{"a late renewal brings a released lock back",
		[]string{"07/released-is-terminal"},
		backend(revive)},
	{"MaxHold is ignored",
		[]string{"07/max-hold"},
		func() *locktest.Service {
			return service(wire.Wrap{Options: func(o *memlock.Options) { o.MaxHold = 0 }})
		}},
	{"the lease ends with Acquire's context",
		[]string{"07/acquire-context", "07/do-context"},
		locker(func(l *brokenLocker) {
			l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
				lease, err := l.Locker.Acquire(ctx, name)
				if err == nil {
					context.AfterFunc(ctx, func() { lease.Release(ctx) })
				}
				return lease, err
			}
		})},
	{"Close does nothing",
		[]string{"07/close-releases", "07/close-wakes-waiters", "07/closed-refuses", "07/close-with-its-context", "07/close-leaves-no-goroutine"},
		locker(func(l *brokenLocker) { l.close = func(context.Context) error { return nil } })},
	{"Close waits for ever for one that waits",
		[]string{"03/closed-while-waiting", "07/close-leaves-no-goroutine", "07/close-wakes-waiters"},
		locker(func(l *brokenLocker) {
			var waiters atomic.Int32
			l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
				waiters.Add(1)
				defer waiters.Add(-1)
				return l.Locker.Acquire(ctx, name)
			}
			l.close = func(ctx context.Context) error {
				if waiters.Load() > 0 {
					select {}
				}
				return l.Locker.Close(ctx)
			}
		})},
	{"a goroutine outlives its Locker",
		[]string{"07/close-leaves-no-goroutine"},
		locker(func(l *brokenLocker) {
			l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
				go func() { select {} }()
				return l.Locker.Acquire(ctx, name)
			}
		})},
	{"the lock breaks when many want it",
		[]string{"08/exclusion-of-clients", "08/exclusion-of-goroutines"},
		backend(grantToACrowd)},
	{"a client shares the lock among its goroutines",
		[]string{"08/exclusion-of-goroutines"},
		locker(reentrant)},
	{"upper and lower case are one name",
		[]string{"08/every-name"},
		locker(func(l *brokenLocker) {
			l.try = func(ctx context.Context, name string) (*locks.Lease, error) {
				return l.Locker.TryAcquire(ctx, strings.ToLower(name))
			}
		})},
	{"a lock waits for the names below it",
		[]string{"08/every-name"},
		backend(waitBelow)},
	{"the empty name is a lock",
		[]string{"08/bad-names"},
		locker(func(l *brokenLocker) {
			l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
				if name == "" {
					name = "empty"
				}
				return l.Locker.Acquire(ctx, name)
			}
		})},
	{"every waiter wakes on every release",
		[]string{"09/one-wakes"},
		stampede},
	{"the context's error is swallowed",
		[]string{"10/cancelled", "10/timed-out", "10/cancelled-before"},
		locker(func(l *brokenLocker) {
			l.acquire = func(ctx context.Context, name string) (*locks.Lease, error) {
				lease, err := l.Locker.Acquire(ctx, name)
				if errors.Is(err, locks.ErrCancelled) {
					err = &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrCancelled}
				}
				return lease, err
			}
		})},
	{"one error for held and unreachable",
		[]string{"10/held"},
		locker(func(l *brokenLocker) {
			l.try = func(ctx context.Context, name string) (*locks.Lease, error) {
				lease, err := l.Locker.TryAcquire(ctx, name)
				if errors.Is(err, locks.ErrHeld) {
					err = &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrHeld, Err: locks.ErrUnreachable}
				}
				return lease, err
			}
		})},
	{"unreachable is reported as held",
		[]string{"10/unreachable"},
		locker(func(l *brokenLocker) {
			l.try = func(ctx context.Context, name string) (*locks.Lease, error) {
				lease, err := l.Locker.TryAcquire(ctx, name)
				if errors.Is(err, locks.ErrUnreachable) {
					err = &locks.Error{Op: "acquire", Name: name, Kind: locks.ErrHeld, Err: err}
				}
				return lease, err
			}
		})},
	{"options are not checked",
		[]string{"10/bad-options"},
		func() *locktest.Service {
			s := service(wire.Wrap{})
			s.BadOptions["no address"] = func() (locks.Locker, error) { return memlock.New(nil) }
			return s
		}},
	{"the password stands in the error",
		[]string{"10/secret"},
		func() *locktest.Service {
			s := service(wire.Wrap{})
			s.Secret = func(_ testing.TB, password string) error {
				return errors.New("dial tcp://user:" + password + "@127.0.0.1:1: connection refused")
			}
			return s
		}},
}
