package locktest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fencedkv/fencedkv/locks"
)

const (
	excludes = "Two goroutines of one process exclude each other like two machines do."
	anyName  = "Any name is a lock of its own: a beside a/b and a%2Fb, braces, slashes, unicode, NUL, long ones."
)

var anyNameIsALock = []part{
	{"exclusion-of-clients", excludes, "", exclusionOfClients},
	{"exclusion-of-goroutines", excludes, "", exclusionOfGoroutines},
	{"every-name", anyName, "", everyName},
	{"bad-names", "The empty name is refused, and one that is too long: ErrBadName.", "", badNames},
}

func exclusionOfClients(k *kit) {
	clients := make([]locks.Locker, 4)
	for i := range clients {
		clients[i] = k.locker(k.long())
	}
	k.exclude(clients, 8)
}

func exclusionOfGoroutines(k *kit) {
	a := k.locker(k.long())
	lease := k.acquire(a, lock)
	k.held(a, lock)
	k.release(lease)
	k.exclude([]locks.Locker{a, a, a, a, a, a}, 5)
}

// exclude lets a goroutine per client go through the lock so many times.
func (k *kit) exclude(clients []locks.Locker, times int) {
	ctx, stop := k.patient()
	defer stop()
	var inside, most atomic.Int32
	k.inTurns(ctx, clients, times, func() {
		if n := inside.Add(1); n > 1 {
			most.Store(n)
		}
		for range 50 {
			runtime.Gosched()
		}
		inside.Add(-1)
	})
	if n := most.Load(); n > 1 {
		k.broken("%d holders of one lock at the same time", n)
	}
	// Nothing but the lock orders these additions: the race detector judges too.
	plain := 0
	k.inTurns(ctx, clients, times, func() { plain++ })
	if want := len(clients) * times; plain != want {
		k.broken("%d additions under the lock made %d", want, plain)
	}
}

func (k *kit) inTurns(ctx context.Context, clients []locks.Locker, times int, f func()) {
	k.Helper()
	errs := make(chan error, len(clients))
	for _, l := range clients {
		go func() {
			errs <- func() error {
				for range times {
					lease, err := l.Acquire(ctx, "counter")
					if err != nil {
						return err
					}
					f()
					if err := lease.Release(ctx); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			k.Errorf("a client that took turns with others got %v", err)
		}
	}
	if k.Failed() {
		k.FailNow()
	}
}

var names = []string{
	"a", "A", "a/b", "a%2Fb", "a%2fb", "a/", "/a", "a//b", "/", "//", "a/..", ".", "..", "...",
	"{a}", "a}{b", "{}", " ", "a ", " a", "a b", "a\tb", "a\nb", "a:b", "a:token", "a:seq", "a:fence", "a.lock", "a-0000000001",
	"ä", "a\u0308", "日本", "🔒", "a\x00", "a\x00b", "\x00", "\xff", "\xff\xfe", "a*", "a?[b]", "%", "%25", "%00", `a\b`, `"a"`, "+", "~", "_", "-",
	strings.Repeat("n", 300), strings.Repeat("n", locks.MaxName-1), strings.Repeat("n", locks.MaxName),
	strings.Repeat("n", locks.MaxName-1) + "m", strings.Repeat("\x00", locks.MaxName),
}

// everyName takes the names in both orders: a lock that waits for the names below
// its own does so only if they are taken first.
func everyName(k *kit) {
	a, b := k.locker(k.long()), k.locker(k.long())
	ctx, stop := k.patient()
	defer stop()
	backward := slices.Clone(names)
	slices.Reverse(backward)
	for _, names := range [][]string{names, backward} {
		var leases []*locks.Lease
		for _, name := range names {
			lease, err := a.TryAcquire(ctx, name)
			if err != nil {
				k.broken("TryAcquire of %.40q (%d bytes), with %d other names held: %v", name, len(name), len(leases), err)
			}
			if lease.Name() != name {
				k.broken("the lease of %.40q has the name %.40q", name, lease.Name())
			}
			leases = append(leases, lease)
		}
		for _, lease := range leases {
			k.held(b, lease.Name())
		}
		for _, lease := range leases {
			k.release(lease)
		}
	}
	for _, name := range names[:4] {
		k.free(b, name)
	}
}

func badNames(k *kit) {
	a := k.locker(k.long())
	ctx, stop := k.patient()
	defer stop()
	for _, name := range []string{"", strings.Repeat("n", locks.MaxName+1)} {
		for _, take := range []takes{a.Acquire, a.TryAcquire} {
			if _, err := take(ctx, name); !errors.Is(err, locks.ErrBadName) {
				k.broken("a name of %d bytes: got %v, want an error over locks.ErrBadName", len(name), err)
			}
		}
	}
}
