package fence_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestAnUnverifiedTokenTellsWhyAndWhatToDo(t *testing.T) {
	away := errors.New("dial tcp: connection refused")
	offered := fence.Token{Lineage: "etcd:1:locks/a", Seq: 34, Holder: "h1"}
	current := fence.Token{Lineage: "etcd:1:locks/a", Seq: 41, Holder: "h2"}
	for name, c := range map[string]struct {
		err  *fence.UnverifiedError
		is   []error
		text []string
	}{
		"no verifier": {
			&fence.UnverifiedError{Resource: "a", Offered: offered, Reason: fence.ErrNoVerifier},
			[]error{fence.ErrUnverified, fence.ErrNoVerifier},
			[]string{`"a"`, "34", `"h1"`, `"etcd:1:locks/a"`, "no verifier knows the lineage", "the Locker that grants this lineage"},
		},
		"a bare number": {
			&fence.UnverifiedError{Resource: "a", Offered: fence.Number(34), Reason: fence.ErrNoVerifier},
			[]error{fence.ErrNoVerifier},
			[]string{"34", "a bare number cannot be verified"},
		},
		"another grant": {
			&fence.UnverifiedError{Resource: "a", Offered: offered, Reason: fence.ErrNotGranted, Current: current},
			[]error{fence.ErrUnverified, fence.ErrNotGranted},
			[]string{"34", "held by 41", `"h2"`, "acquire the lock anew"},
		},
		"no grant": {
			&fence.UnverifiedError{Resource: "a", Offered: offered, Reason: fence.ErrNotGranted},
			[]error{fence.ErrNotGranted},
			[]string{"the lock is free"},
		},
		"no answer": {
			&fence.UnverifiedError{Resource: "a", Offered: offered, Reason: fence.ErrNoAnswer, Err: away},
			[]error{fence.ErrUnverified, fence.ErrNoAnswer, away},
			[]string{"did not answer", away.Error(), "try again"},
		},
		"no reason": {
			&fence.UnverifiedError{Resource: "a", Offered: offered},
			[]error{fence.ErrUnverified},
			[]string{"34", `"a"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := &fence.RejectedError{Resource: "a", Offered: c.err.Offered, Mark: fence.Mark{Token: fence.Number(7)}, Reason: c.err}
			for _, err := range []error{c.err, refusal} {
				for _, want := range c.is {
					if !errors.Is(err, want) {
						t.Errorf("%T: errors.Is(err, %v) = false, want true", err, want)
					}
				}
				for _, want := range c.text {
					if n := strings.Count(err.Error(), want); n < 1 {
						t.Errorf("%T says %q, want %q in it", err, err, want)
					}
				}
			}
			if got := refusal.Error(); !strings.Contains(got, "the highest admitted is 7") || strings.Count(got, "resource") != 1 {
				t.Errorf("the refusal says %q, want the mark in it and the resource once", got)
			}
			if got, ok := errors.AsType[*fence.UnverifiedError](error(refusal)); !ok || got != c.err {
				t.Errorf("errors.AsType finds %v, want the answer of the verifier", got)
			}
		})
	}
}
