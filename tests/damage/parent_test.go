package damage_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// workers is how many child processes examine at a time.
const workers = 2

// patience is how long one damage may be examined.
const patience = 2 * time.Minute

// examine has all of a list examined, and calls result for each, one at a time.
func (c *corpus) examine(t *testing.T, k kind, list []int, result func(n int, v verdict)) {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	exe, err := workerExe()
	must(t, err)
	const at = 500 // in a task
	tasks := make(chan []int)
	var (
		mu sync.Mutex
		wg sync.WaitGroup
	)
	for range workers {
		wg.Go(func() {
			w := &process{exe: exe, env: workerEnv + "=" + string(text)}
			defer w.end()
			for list := range tasks {
				for len(list) > 0 {
					done, err := w.do(task{k, list}, func(n int, v verdict) {
						mu.Lock()
						defer mu.Unlock()
						result(n, v)
					})
					if err != nil {
						t.Error(err)
						break // the others are examined, so that nobody waits
					}
					list = list[done:]
				}
			}
		})
	}
	all, said := len(list), 0
	for len(list) > 0 {
		n := min(at, len(list))
		tasks <- list[:n]
		list = list[n:]
		if done := 10 * (all - len(list)) / all; all > 100_000 && done > said {
			said = done
			t.Logf("%s: %d0 %% of %d", c.Name, done, all)
		}
	}
	close(tasks)
	wg.Wait()
}

// workerExe is this test binary. A worker has one goroutine to speak of, so that
// under the race detector, which would make it five times as slow, it is built
// without.
var workerExe = sync.OnceValues(func() (string, error) {
	if !raced {
		return os.Executable()
	}
	exe := filepath.Join(made.dir, "worker.test")
	out, err := exec.Command("go", "test", "-race=false", "-c", "-o", exe, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the worker: %w: %s", err, out)
	}
	return exe, nil
})

// process is a worker. One that has died is started again.
type process struct {
	exe    string
	env    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func (w *process) start() error {
	w.stderr.Reset()
	w.cmd = exec.Command(w.exe)
	w.cmd.Env = append(os.Environ(), w.env)
	w.cmd.Stderr = &w.stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	w.in, w.out = in, bufio.NewReader(out)
	return w.cmd.Start()
}

// do has a task done and returns how many of it are: not all, if the worker died
// of the last.
func (w *process) do(t task, result func(int, verdict)) (done int, err error) {
	if w.cmd == nil {
		if err := w.start(); err != nil {
			return 0, err
		}
	}
	in := w.in
	go fmt.Fprintln(in, t) // the worker may die before it has read all
	for _, n := range t.list {
		late := time.AfterFunc(patience, func() { w.cmd.Process.Kill() })
		line, err := w.out.ReadString('\n')
		inTime := late.Stop()
		if err != nil {
			result(n, w.dead(inTime))
			return done + 1, nil //nolint:nilerr // the worker's death is a result
		}
		v, err := parseVerdict(line)
		if err != nil {
			return done, err
		}
		result(n, v)
		done++
	}
	return done, nil
}

func (w *process) dead(inTime bool) verdict {
	_ = w.cmd.Wait()
	w.cmd = nil
	if !inTime {
		return verdict{hang, "killed after " + patience.String()}
	}
	for line := range strings.Lines(w.stderr.String()) {
		if line = strings.TrimSpace(line); line != "" {
			return verdict{crash, line}
		}
	}
	return verdict{crash, "no output"}
}

func (w *process) end() {
	if w.cmd != nil {
		w.in.Close()
		_ = w.cmd.Wait()
	}
}

func parseVerdict(line string) (verdict, error) {
	number, detail, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= int(classes) {
		return verdict{}, fmt.Errorf("a worker said %q", line)
	}
	return verdict{class(n), detail}, nil
}
