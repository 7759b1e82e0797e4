package device_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLimitOfFileSizeAtEachStepOfGrowth puts a limit on the size of files, from
// none to enough, under the next write.
func TestLimitOfFileSizeAtEachStepOfGrowth(t *testing.T) {
	// The limit is one of the process, whose output may be a file too.
	const own = "FENCEDKV_DEVICE_LIMIT"
	if os.Getenv(own) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLimitOfFileSizeAtEachStepOfGrowth$", "-test.v")
		cmd.Env = append(os.Environ(), own+"=1", roleEnv+"="+roleChild)
		cmd.WaitDelay = patience
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("in a process of its own: %v", err)
		}
		t.Logf("%s", out)
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	e := newEdge(t, filepath.Join(t.TempDir(), "store.db"))
	limit := func(t *testing.T, pages int) (lift func()) {
		t.Helper()
		var old syscall.Rlimit
		must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
		tight := old
		tight.Cur = uint64(pages * pageSize)
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &tight))
		return func() { must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)) }
	}
	for name, tt := range map[string]struct{ step, size int }{
		"within the file":            {1, 60_000},
		"beyond what it once had":    {19, 5 * large},
		"beyond a second step of it": {53, 10 * large},
	} {
		got := e.search(t, tt.step, limit, putOf("b", 100, "next", strings.Repeat("y", tt.size)))
		t.Logf("%s, limits in steps of %d pages: %s", name, tt.step, got)
	}
}
