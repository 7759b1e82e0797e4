package servers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAKilledTestBinaryLeavesNoServer(t *testing.T) {
	tmp := t.TempDir()
	cmd := caseCommand("hangs", tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "hangs"; {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(pids) != len(kinds)+1 {
		t.Fatalf("%d servers were started, want %d", len(pids), len(kinds)+1)
	}
	waitUntilGone(t, pids)

	// The directories are left, until the next test binary starts a server.
	if out, err := caseCommand("starts", tmp).CombinedOutput(); err != nil {
		t.Fatalf("the next test binary: %v\n%s", err, out)
	}
	wantEmptyDir(t, tmp)
}

func waitUntilGone(t *testing.T, pids []int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		var left []int
		for _, pid := range pids {
			if running(pid) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the processes %v are still there %v later", left, patience)
		}
		runtime.Gosched()
	}
}

// running tells whether a process of somebody else is there and not a zombie
// that waits for its new parent (Linux).
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}
