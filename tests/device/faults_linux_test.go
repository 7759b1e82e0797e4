package device_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// full reports whether every n meets every error.
func full() bool { return os.Getenv("DEVICE_FULL") != "" }

// TestFailedOperationHasItsOutcome lets each operation of the workload fail, once
// and from there on for ever.
func TestFailedOperationHasItsOutcome(t *testing.T) {
	requireFUSE(t)
	counts := countOperations(t)
	t.Logf("the workload makes %v", counts)
	for _, op := range []string{opWrite, opTruncate, opFsync, opFdatasync, opDirSync} {
		if counts[op] == 0 {
			t.Errorf("the workload makes no %s", op)
		}
		for _, s := range seriesOf(op) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.everyN(t, newDevice(t), counts[op])
			})
		}
	}
}

// series is faults of one kind for every n. Each n meets one of the errors in
// turn, or all of them.
type series struct {
	name   string
	fault  Fault
	errnos []syscall.Errno
	all    bool
}

func seriesOf(op string) []series {
	broken, noRoom := []syscall.Errno{syscall.EIO}, []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	once, forever := Fault{Op: op}, Fault{Op: op, Forever: true}
	if op != opWrite && op != opTruncate {
		return []series{{op + " once", once, broken, true}, {op + " for ever", forever, broken, true}}
	}
	all := []series{
		{op + " once, broken", once, broken, true},
		{op + " once, no room", once, noRoom, full()},
		{op + " for ever", forever, append(noRoom, broken...), full()},
	}
	if full() && op == opWrite {
		all = append(all, series{"half a write", Fault{Op: op, Half: true}, append(noRoom, broken...), true})
	}
	return all
}

func (s series) everyN(t *testing.T, d *device, count int) {
	t.Helper()
	for n := 1; ; n++ {
		errnos := s.errnos
		if !s.all {
			errnos = errnos[n%len(errnos):][:1]
		}
		failed := false
		for _, errno := range errnos {
			f := s.fault
			f.N, f.Errno = n, errno
			r := run{device: d, open: openOurs, fault: f}
			if err := r.do(t); err != nil {
				t.Errorf("%v: %v", f, err)
			}
			failed = failed || len(r.account.Failures) > 0
		}
		if failed {
			continue
		}
		if n-1 < count*9/10 {
			t.Errorf("%d failed, the workload makes %d", n-1, count)
		}
		t.Logf("n from 1 to %d", n-1)
		return
	}
}

func (f Fault) String() string {
	how := "once"
	switch {
	case f.Half:
		how = "in the middle"
	case f.Forever:
		how = "and all later ones"
	}
	return fmt.Sprintf("%s %d, %s: %v", f.Op, f.N, how, f.Errno)
}

// countOperations runs the workload on a sound device.
func countOperations(t *testing.T) map[string]int {
	t.Helper()
	r := run{device: newDevice(t), open: openOurs}
	if err := r.do(t); err != nil {
		t.Fatal(err)
	}
	if len(r.account.Failures) > 0 {
		t.Fatalf("without a fault: %v", r.account.Failures)
	}
	return r.account.Counts
}
