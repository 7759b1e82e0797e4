package boltfile_test

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

func TestGuardTurnsAPanicIntoErrCorrupt(t *testing.T) {
	cause := errors.New("cause")
	for _, value := range []any{"assertion failed", cause, 7} {
		err := boltfile.Guard("s.db", func() error { panic(value) })
		var c *boltfile.CorruptError
		if !errors.Is(err, boltfile.ErrCorrupt) || !errors.As(err, &c) {
			t.Fatalf("panic(%v): got %v, want a CorruptError", value, err)
		}
		if c.Path != "s.db" || !strings.Contains(err.Error(), "s.db") {
			t.Errorf("panic(%v): path %q, text %q; want s.db in both", value, c.Path, err)
		}
		if !strings.Contains(string(c.Stack), "TestGuardTurnsAPanicIntoErrCorrupt") {
			t.Errorf("panic(%v): the stack does not show where:\n%s", value, c.Stack)
		}
		if got, want := errors.Is(err, cause), value == any(cause); got != want {
			t.Errorf("panic(%v): errors.Is cause %v, want %v", value, got, want)
		}
	}
}

func TestGuardPassesTheErrorOn(t *testing.T) {
	boom := errors.New("boom")
	if err := boltfile.Guard("s.db", func() error { return boom }); err != boom {
		t.Errorf("got %v, want the function's own error", err)
	}
	if err := boltfile.Guard("s.db", func() error { return nil }); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	user := func(user func(func() error) error) error { return user(func() error { return boom }) }
	if err := boltfile.GuardAround("s.db", user); err != boom {
		t.Errorf("got %v, want the user's own error", err)
	}
}

func TestPanicOfTheUserPassesThroughEveryGuard(t *testing.T) {
	want := &struct{ s string }{"mine"}
	defer func() {
		if got := recover(); got != any(want) {
			t.Errorf("recovered %v, want the user's value", got)
		}
	}()
	boltfile.GuardAround("outer", func(user func(func() error) error) error {
		return user(func() error {
			return boltfile.GuardAround("inner", func(user func(func() error) error) error {
				return user(func() error { panic(want) })
			})
		})
	})
	t.Error("the panic was swallowed")
}

func TestPanicAfterTheUserReturnedIsErrCorrupt(t *testing.T) {
	err := boltfile.GuardAround("s.db", func(user func(func() error) error) error {
		user(func() error { return nil })
		panic("bbolt")
	})
	if !errors.Is(err, boltfile.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestGoexitPassesThroughGuards(t *testing.T) {
	for name, run := range map[string]func(){
		"guard": func() { boltfile.Guard("s.db", func() error { runtime.Goexit(); return nil }) },
		"user": func() {
			boltfile.GuardAround("s.db", func(user func(func() error) error) error {
				return user(func() error { runtime.Goexit(); return nil })
			})
		},
	} {
		returned, done := false, make(chan struct{})
		go func() {
			defer close(done)
			run()
			returned = true
		}()
		if <-done; returned {
			t.Errorf("%s: Goexit was swallowed", name)
		}
	}
}

func TestGuardLeavesTheFaultSettingOfOthersAlone(t *testing.T) {
	setting := func() bool {
		b := debug.SetPanicOnFault(false)
		debug.SetPanicOnFault(b)
		return b
	}
	boltfile.GuardAround("s.db", func(user func(func() error) error) error {
		user(func() error {
			if setting() {
				t.Error("the user's code runs with PanicOnFault")
			}
			return nil
		})
		if !setting() {
			t.Error("PanicOnFault is off after the user's code")
		}
		return nil
	})
	boltfile.Guard("s.db", func() error { panic("x") })
	if setting() {
		t.Error("PanicOnFault stays on after Guard")
	}
}
