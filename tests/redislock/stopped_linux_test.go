package redislock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// A process that is stopped keeps its connections, so it is told of its turn like
// one that runs.
func TestStoppedProcessThatWaitsLosesItsTurnAndComesBack(t *testing.T) {
	t.Parallel()
	prefix, addr := space(), servers.SharedRedis(t)
	client, k := newClient(t, addr), key(prefix, "a")
	lease := bounded.Acquire(t, newLocker(t, client, stoppable(prefix)), "a")

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), waiterEnv+"="+addr+" "+prefix)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	defer func() {
		_ = cmd.Process.Kill()
		for range said { // what it still says
		}
		_ = cmd.Wait()
	}()
	bounded.Eventually(t, "the process waits", func() bool {
		return waiters(t, client, k) == 1 && len(client.PubSubChannels(t.Context(), prefix+":wake:*").Val()) > 0
	})
	second := queued(t, client, newLocker(t, client, stoppable(prefix)), k)

	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	bounded.Eventually(t, "the process stands still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	})
	bounded.Release(t, lease)
	lease = bounded.Granted(t, "the second waiter, after the claim time of the process", second)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	bounded.Eventually(t, "the process waits again", func() bool { return waiters(t, client, k) == 1 })
	bounded.Release(t, lease)
	for _, want := range []string{"granted", "<nil>"} {
		if got := bounded.Receive(t, "a word of the process", said); got != want {
			t.Errorf("the process said %q, want %q", got, want)
		}
	}
}
