package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
)

// The test binary is also the program that is started again.
func TestMain(m *testing.M) {
	switch process.Role(os.Getenv) {
	case "":
		os.Exit(m.Run())
	case "echo":
		os.Exit(echo())
	case "deaf":
		select {}
	case "broken":
		fmt.Fprintln(os.Stderr, "it hurts here")
		os.Exit(3)
	}
}

// echo says what it hears until its parent is gone.
func echo() int {
	ctx, parent := process.Parent(context.Background(), os.Stdin, os.Stdout)
	for {
		var line string
		if err := parent.Receive(ctx, &line); err != nil {
			return 0
		}
		if err := parent.Send(line); err != nil {
			return 1
		}
	}
}

const patience = 20 * time.Second

func start(t *testing.T, role string) *process.Child {
	t.Helper()
	c, err := process.Start(process.Spec{Role: role, Name: role, Dir: t.TempDir(), Config: "config", DieWithParent: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func hear(t *testing.T, c *process.Child, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got string
	if err := c.Receive(ctx, &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("got the line %q, want %q", got, want)
	}
}

func TestAChildHearsItsConfigFirstAndAnswers(t *testing.T) {
	c := start(t, "echo")
	hear(t, c, "config")
	if err := c.Send("hello"); err != nil {
		t.Fatal(err)
	}
	hear(t, c, "hello")
	c.Quit(patience)
}

func TestAStoppedChildSaysNothingUntilItGoesOn(t *testing.T) {
	c := start(t, "echo")
	hear(t, c, "config")
	if err := c.Stop(); !process.CanStop {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Stop = %v, want an error over errors.ErrUnsupported", err)
		}
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if err := c.Send("hello"); err != nil {
		t.Fatal(err)
	}
	// A running child answers in far less.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var got string
	if err := c.Receive(ctx, &got); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stopped child said %q (%v), want nothing", got, err)
	}
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	hear(t, c, "hello")
}

func TestKillEndsAStoppedChild(t *testing.T) {
	c := start(t, "echo")
	hear(t, c, "config")
	if err := c.Stop(); err != nil && process.CanStop {
		t.Fatal(err)
	}
	c.Kill()
	if err := c.Send("hello"); err == nil {
		t.Error("Send to a killed child: got no error")
	}
}

func TestQuitEndsAStoppedChildAndOneThatDoesNotListen(t *testing.T) {
	stopped := start(t, "echo")
	hear(t, stopped, "config")
	if err := stopped.Stop(); err != nil && process.CanStop {
		t.Fatal(err)
	}
	stopped.Quit(patience)
	start(t, "deaf").Quit(50 * time.Millisecond)
}

func TestAChildThatEndsByItselfIsAnErrorWithItsLastWords(t *testing.T) {
	c := start(t, "broken")
	var line string
	err := c.Receive(t.Context(), &line)
	if err == nil {
		t.Fatalf("got the line %q, want an error", line)
	}
	for _, want := range []string{"broken", "ended by itself", "exit status 3", "it hurts here"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	c := start(t, "deaf")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var line string
	if err := c.Receive(ctx, &line); !errors.Is(err, context.Canceled) {
		t.Errorf("Receive = %v, want an error over context.Canceled", err)
	}
}
