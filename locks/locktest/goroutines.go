package locktest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"runtime/pprof"
	"strings"

	"github.com/fencedkv/fencedkv/locks"
)

const module = "github.com/fencedkv/fencedkv/"

// closeLeavesNoGoroutine finds a Locker's goroutines by a profiler label, which
// a goroutine has from the one that started it, and so tells them from those of
// the parts that run at the same time. Of these only goroutines with a function
// of the Locker's package, of package locks or of an adapter are looked at: a
// driver's own may belong to a client that the caller made.
func closeLeavesNoGoroutine(k *kit) {
	id := fmt.Sprintf("%p", k)
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("locktest", id)))
	defer pprof.SetGoroutineLabels(context.Background())

	a, b := k.locker(k.long()), k.locker(k.long())
	k.acquire(a, lock)
	k.acquire(a, "other")
	ctx, stop := k.patient()
	defer stop()
	waiter := start(ctx, b.Acquire, lock)
	k.queued(lock, 2)
	k.close(b)
	k.result(waiter, "Close")
	k.close(a)

	var left []string
	if !k.within(k.patience()/2, func() bool { left = goroutines(id, a); return len(left) == 0 }) {
		k.broken("%d kinds of goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	}
}

func goroutines(id string, l locks.Locker) (found []string) {
	own := reflect.TypeOf(l)
	if own.Kind() == reflect.Pointer {
		own = own.Elem()
	}
	functions := []string{module + "locks.", module + "adapters/"}
	if own.PkgPath() != "" {
		functions = append(functions, own.PkgPath()+".")
	}
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{err.Error()}
	}
	for g := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(g, id) {
			continue
		}
		for _, f := range functions {
			if strings.Contains(g, "\t"+f) {
				found = append(found, g)
				break
			}
		}
	}
	return found
}
