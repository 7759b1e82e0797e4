package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Child is the parent's handle of a child process. Its methods are for one
// goroutine at a time.
type Child struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan []byte
	stderr *tail
	quit   chan struct{} // closed by Kill: nobody receives lines any more
	exited chan struct{} // closed when the process is gone and waited for
	once   sync.Once
}

// Spec says what to start.
type Spec struct {
	Role string // which function of the program the child runs
	Name string // for messages and for the list of processes
	Dir  string // its temporary directory, TMPDIR
	// Config is the first line that the child reads. Secrets go here: an
	// argument or a variable could be read by others.
	Config any
	// DieWithParent has the kernel kill the child with its parent, where it
	// can. Without it the child has the time to clean up.
	DieWithParent bool
}

// Start starts this program again in the role of s, in a process group of its
// own, so that the terminal's Ctrl-C reaches the parent alone.
func Start(s Spec) (*Child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	cmd := exec.Command(exe, s.Name)
	cmd.Env = append(os.Environ(), roleVariable+"="+s.Role, "TMPDIR="+s.Dir, "TMP="+s.Dir, "TEMP="+s.Dir)
	c := &Child{
		name: s.Name, cmd: cmd, stderr: &tail{},
		lines: make(chan []byte), quit: make(chan struct{}), exited: make(chan struct{}),
	}
	cmd.Stderr = c.stderr
	prepare(cmd, s.DieWithParent)
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	if err := c.run(stdout); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	if err := c.Send(s.Config); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

// run starts the process and reads its lines until it is gone. The parent death
// signal of Linux follows the thread that started the child, so the goroutine
// keeps its thread until the child is gone.
func (c *Child) run(stdout io.Reader) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(c.exited)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			select {
			case c.lines <- append([]byte(nil), in.Bytes()...):
			case <-c.quit:
			}
		}
		_ = c.cmd.Wait() // the state is in cmd.ProcessState
	}()
	return <-started
}

// PID is the child's process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Send writes one line to the child.
func (c *Child) Send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return c.gone(fmt.Errorf("tell %s: %w", c.name, err))
	}
	return nil
}

// Receive reads the child's next line into v.
func (c *Child) Receive(ctx context.Context, v any) error {
	select {
	case line := <-c.lines:
		if err := json.Unmarshal(line, v); err != nil {
			return fmt.Errorf("%s says %q: %w", c.name, line, err)
		}
		return nil
	case <-c.exited:
		return c.gone(fmt.Errorf("%s ended by itself", c.name))
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", c.name, context.Cause(ctx))
	}
}

// Stop stops the process where it stands and returns once it has stopped. It
// returns errors.ErrUnsupported where the platform cannot.
func (c *Child) Stop() error {
	if err := stop(c.cmd.Process); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	return nil
}

// Continue lets a stopped process go on.
func (c *Child) Continue() error {
	if err := resume(c.cmd.Process); err != nil {
		return fmt.Errorf("continue %s: %w", c.name, err)
	}
	return nil
}

// Quit asks the child to end by closing its standard input, and kills it if it
// has not done so in time.
func (c *Child) Quit(patience time.Duration) {
	_ = resume(c.cmd.Process) // a stopped process would not notice
	_ = c.stdin.Close()
	c.once.Do(func() { close(c.quit) })
	select {
	case <-c.exited:
	case <-time.After(patience):
		c.Kill()
	}
}

// Kill ends the process, stopped or not, and returns when it is gone.
func (c *Child) Kill() {
	c.once.Do(func() { close(c.quit) })
	_ = c.cmd.Process.Kill() // an error says that it has already ended
	<-c.exited
}

// gone adds what the child said last, if it has ended.
func (c *Child) gone(err error) error {
	select {
	case <-c.exited:
	case <-time.After(time.Second):
		return err
	}
	err = fmt.Errorf("%w (%v)", err, c.cmd.ProcessState)
	if said := strings.TrimSpace(c.stderr.String()); said != "" {
		err = errors.Join(err, errors.New(said))
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailSize; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
