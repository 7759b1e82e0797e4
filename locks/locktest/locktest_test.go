package locktest_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks/internal/wire"
	"github.com/fencedkv/fencedkv/locks/locktest"
)

// defectVariable names the defect for TestKit in a process of its own.
const defectVariable = "LOCKTEST_DEFECT"

// service has a lease time that is short for the broken Lockers, because check
// runs the kit again if it was too short, and longer for the good one.
func service(w wire.Wrap) *locktest.Service {
	ttl := 1500 * time.Millisecond
	if os.Getenv(defectVariable) != "" {
		ttl = 800 * time.Millisecond
	}
	s := wire.Service(ttl, w)
	s.Patience = 6 * time.Second
	// memlock has neither sessions nor addresses. The kit is tested with both.
	s.Revoke = s.DeleteEntry
	s.Secret = func(testing.TB, string) error { return errors.New("connection refused") }
	return s
}

// bare is the value of defectVariable for a factory without abilities.
const bare = "bare"

// TestKit runs the kit on a good Locker, or on the one with the defect that the
// environment names.
func TestKit(t *testing.T) {
	make := func() *locktest.Service { return service(wire.Wrap{}) }
	switch what := os.Getenv(defectVariable); what {
	case "":
	case bare:
		make = func() *locktest.Service {
			s := service(wire.Wrap{})
			return &locktest.Service{New: s.New, TTL: s.TTL, Patience: s.Patience}
		}
	default:
		i := slices.IndexFunc(defects, func(d defect) bool { return d.what == what })
		if i < 0 {
			t.Fatalf("no defect %q", what)
		}
		make = defects[i].make
	}
	locktest.Run(t, func(t *testing.T) *locktest.Service {
		s := make()
		if !locktest.NeedsOwnServer(t) {
			s.Restart, s.Pause = nil, nil // a part that uses them after all is skipped or panics
		}
		return s
	})
}

// TestMissingAbilityIsReportedByName runs the kit on a Service that offers
// nothing but Lockers.
func TestMissingAbilityIsReportedByName(t *testing.T) {
	failed, out := defect{what: bare}.run(t)
	if len(failed) > 0 {
		t.Errorf("the kit fails in %v\n%s", failed, out)
	}
	skips := strings.Count(out, "--- SKIP: ")
	if reasons := strings.Count(out, "the factory offers no "); skips == 0 || reasons != skips {
		t.Errorf("%d parts are skipped and %d reasons given\n%s", skips, reasons, out)
	}
	for _, ability := range []string{"Entries", "DeleteEntry", "ReplaceEntry", "DeleteWaiters", "Revoke", "Restart",
		"Cut", "LoseReply", "Requests", "Expire and no Cut", "BadOptions", "Secret"} {
		if !strings.Contains(out, "the factory offers no "+ability+";") {
			t.Errorf("no part reports that %s is missing", ability)
		}
	}
}

// TestEachDefectFailsItsDuty runs the kit on every broken Locker: exactly the
// intended subtests fail.
func TestEachDefectFailsItsDuty(t *testing.T) {
	if os.Getenv(defectVariable) != "" {
		t.Fatal("this test runs in the outer process only")
	}
	// The processes mostly wait, so more of them run than -parallel allows.
	slots := make(chan struct{}, 3*runtime.NumCPU())
	var wg sync.WaitGroup
	for _, d := range defects {
		wg.Go(func() {
			t.Run(d.what, func(t *testing.T) {
				slots <- struct{}{}
				defer func() { <-slots }()
				d.check(t)
			})
		})
	}
	wg.Wait()
}

var failedPart = regexp.MustCompile(`(?m)^ *--- FAIL: TestKit/duty-(\d\d)-[^/\s]+/(\S+)`)

// check runs the kit until it fails in exactly the intended parts, at most three
// times: on a machine that stands still for longer than a renewal can wait, good
// lockers lose leases too, and defects of time do not show.
func (d defect) check(t *testing.T) {
	want := slices.Sorted(slices.Values(d.fails))
	for range 3 {
		got, out := d.run(t)
		if slices.Equal(got, want) {
			if words := strings.Count(out, "the contract says: "); words < len(want) {
				t.Errorf("%d of %d failures quote the contract\n%s", words, len(want), out)
			}
			return
		}
		t.Logf("the kit fails in %v, want %v\n%s", got, want, out)
	}
	t.Error("three times not as intended")
}

// run returns the parts in which the kit fails, and its output.
func (d defect) run(t *testing.T) (failed []string, out string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKit$", "-test.v", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), defectVariable+"="+d.what)
	output, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, m := range failedPart.FindAllStringSubmatch(string(output), -1) {
		failed = append(failed, m[1]+"/"+m[2])
	}
	slices.Sort(failed)
	return failed, string(output)
}
