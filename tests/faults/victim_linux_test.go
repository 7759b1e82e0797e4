package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long everything here waits. It is no bound on speed.
const patience = 30 * time.Second

// victim is a child process as its parent sees it.
type victim struct {
	cmd    *exec.Cmd
	orders *json.Encoder
	exited chan struct{}

	mu      sync.Mutex
	events  []event       // all but those of evWrite
	changed chan struct{} // closed, and replaced, with every event
	over    error         // why there are no more
}

// startVictim starts a client; write gets what it wants to write. It is killed when
// the test ends.
func startVictim(t testing.TB, a access, write func(event)) (*victim, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	v := &victim{cmd: exec.Command(os.Args[0]), exited: make(chan struct{}), changed: make(chan struct{})}
	v.cmd.Env = append(os.Environ(), accessVariable+"="+string(text))
	v.cmd.Stderr = t.Output()
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := v.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	v.orders = json.NewEncoder(stdin)
	stdout, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := v.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(v.exited)
		v.listen(stdout, write)
		_ = v.cmd.Wait() // the state is in cmd.ProcessState
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the victim: %w", err)
	}
	t.Cleanup(v.kill)
	_, err = v.await(evOpened)
	return v, err
}

func (v *victim) listen(out io.Reader, write func(event)) {
	lines := json.NewDecoder(out)
	var err error
	for err == nil {
		var e event
		if err = lines.Decode(&e); err == nil && e.What == evWrite {
			write(e)
			continue
		}
		v.mu.Lock()
		if err == nil {
			v.events = append(v.events, e)
		} else {
			v.over = fmt.Errorf("the victim has ended: %w", err)
		}
		close(v.changed)
		v.changed = make(chan struct{})
		v.mu.Unlock()
	}
}

func (v *victim) order(o order) error {
	if err := v.orders.Encode(o); err != nil {
		return fmt.Errorf("tell the victim to %s: %w", o.Do, err)
	}
	return nil
}

// await returns the first event of one of these kinds.
func (v *victim) await(kinds ...string) (event, error) {
	return v.awaitThat(strings.Join(kinds, " or "), func(e event) bool {
		for _, kind := range kinds {
			if e.What == kind {
				return true
			}
		}
		return false
	})
}

// awaitThat returns the first event that is it.
func (v *victim) awaitThat(what string, is func(event) bool) (event, error) {
	patient := time.After(patience)
	for next := 0; ; {
		v.mu.Lock()
		events, changed, over := v.events, v.changed, v.over
		v.mu.Unlock()
		for ; next < len(events); next++ {
			if is(events[next]) {
				return events[next], nil
			}
		}
		if over != nil {
			return event{}, fmt.Errorf("while waiting for %q: %w", what, over)
		}
		select {
		case <-changed:
		case <-patient:
			return event{}, fmt.Errorf("the victim has not told %q within %v, only %s", what, patience, v.told())
		}
	}
}

// seen returns the first event of a kind, if it has come.
func (v *victim) seen(kind string) (event, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.events {
		if e.What == kind {
			return e, true
		}
	}
	return event{}, false
}

// forget forgets all events so far.
func (v *victim) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events = nil
}

// told is the story so far.
func (v *victim) told() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, e := range v.events {
		fmt.Fprintf(&b, "\n\t%s %s", e.At.Format("05.000"), e.What)
		if e.Token != "" {
			fmt.Fprintf(&b, " %s until %s", e.Token, e.Deadline.Format("05.000"))
		}
		if e.Err != "" {
			fmt.Fprintf(&b, ": %s", e.Err)
		}
	}
	return b.String()
}

// stop stops the process where it stands, and returns when it has.
func (v *victim) stop() error {
	if err := v.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the victim: %w", err)
	}
	return within("the victim stands still", func() (bool, error) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.cmd.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ") // after the name, which may have blanks
		return strings.HasPrefix(state, "T"), err
	})
}

func (v *victim) goOn() error {
	if err := v.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue the victim: %w", err)
	}
	return nil
}

// kill ends the process at once, also when it is stopped.
func (v *victim) kill() {
	_ = v.cmd.Process.Kill() // an error says that it has already ended
	<-v.exited
}

// within asks until the answer is true, as long as is patient.
func within(what string, ask func() (bool, error)) error { return withinTime(patience, what, ask) }

func withinTime(d time.Duration, what string, ask func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); ; <-tick.C {
		is, err := ask()
		if is && err == nil {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("%s: not within %v", what, d), err)
		}
	}
}

// receive returns the next element of ch.
func receive[T any](what string, ch <-chan T) (T, error) {
	select {
	case v := <-ch:
		return v, nil
	case <-time.After(patience):
		var none T
		return none, fmt.Errorf("%s: not within %v", what, patience)
	}
}
