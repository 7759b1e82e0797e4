package locktest_test

import (
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

func service(w wire.Wrap) *locktest.Service {
	s := wire.Service(400*time.Millisecond, w)
	s.Patience = 4 * time.Second
	return s
}

// TestKit runs the kit on a good Locker, or on the one with the defect that the
// environment names.
func TestKit(t *testing.T) {
	make := func() *locktest.Service { return service(wire.Wrap{}) }
	if what := os.Getenv(defectVariable); what != "" {
		i := slices.IndexFunc(defects, func(d defect) bool { return d.what == what })
		if i < 0 {
			t.Fatalf("no defect %q", what)
		}
		make = defects[i].make
	}
	locktest.Run(t, func(*testing.T) *locktest.Service { return make() })
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

func (d defect) check(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKit$", "-test.v", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), defectVariable+"="+d.what)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the kit passes")
	}
	var got []string
	for _, m := range failedPart.FindAllStringSubmatch(string(out), -1) {
		got = append(got, m[1]+"/"+m[2])
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(d.fails))
	if !slices.Equal(got, want) {
		t.Errorf("the kit fails in %v, want %v\n%s", got, want, out)
	}
	if words := strings.Count(string(out), "the contract says: "); words < len(want) {
		t.Errorf("%d of %d failures quote the contract\n%s", words, len(want), out)
	}
}
