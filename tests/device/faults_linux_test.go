package device_test

import (
	"fmt"
	"os"
	"strings"
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
	noRoom := []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	for _, op := range []string{opWrite, opTruncate, opFsync, opFdatasync, opDirSync} {
		if counts[op] == 0 {
			t.Errorf("the workload makes no %s", op)
		}
		faults := []Fault{{Op: op, Errno: syscall.EIO}, {Op: op, Errno: syscall.EIO, Forever: true}}
		if op == opWrite || op == opTruncate {
			faults = append(faults, Fault{Op: op}, Fault{Op: op, Forever: true})
		}
		if op == opWrite && full() {
			faults = append(faults, Fault{Op: op, Half: true}, Fault{Op: op, Half: true, Errno: syscall.EIO})
		}
		for _, f := range faults {
			t.Run(f.String(), func(t *testing.T) {
				t.Parallel()
				d := newDevice(t)
				n, runs := 1, 0
				for ; ; n++ {
					f.N = n
					errnos := []syscall.Errno{f.Errno}
					if f.Errno == 0 && full() {
						errnos = noRoom
					} else if f.Errno == 0 {
						errnos = noRoom[n%len(noRoom):][:1]
					}
					failed := false
					for _, errno := range errnos {
						f.Errno = errno
						r := run{device: d, open: openOurs, fault: f}
						if err := r.do(t); err != nil {
							t.Errorf("%v: %v", f, err)
						}
						runs++
						failed = failed || len(r.account.Failures) > 0
					}
					if len(errnos) > 1 || errnos[0] != syscall.EIO {
						f.Errno = 0
					}
					if !failed {
						break
					}
				}
				if n-1 < counts[op]*9/10 {
					t.Errorf("%d failed, the workload makes %d", n-1, counts[op])
				}
				t.Logf("n from 1 to %d, %d runs", n-1, runs)
			})
		}
	}
}

func (f Fault) String() string {
	how := []string{f.Op}
	if f.N > 0 {
		how = append(how, fmt.Sprint(f.N))
	}
	switch f.Errno {
	case 0:
		how = append(how, "no room")
	case syscall.EIO:
		how = append(how, "EIO")
	default:
		how = append(how, f.Errno.Error())
	}
	if f.Half {
		how = append(how, "in the middle")
	}
	if f.Forever {
		return strings.Join(append(how, "for ever"), ", ")
	}
	return strings.Join(append(how, "once"), ", ")
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
