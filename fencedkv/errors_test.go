package fencedkv_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// Loggers print errors with %+v, structs that contain them, and what errors.As
// found, by value too.
func TestEveryErrorPrintsTextAndNoAddresses(t *testing.T) {
	reason := errors.New("the reason")
	mark := fence.Mark{Token: fence.Number(34), RaisedAt: time.Unix(1, 0)}
	rejected := fence.RejectedError{Resource: "r", Offered: fence.Number(33), Mark: mark, Reason: fence.ErrStale}
	limit := fencedkv.LimitError{What: "key", Size: 3, Limit: 2}
	argument := fencedkv.ArgumentError{Argument: "key", Problem: "is empty"}
	corrupt := fencedkv.CorruptError{Path: "p", Kind: "mark", Err: reason}
	inUse := fencedkv.InUseError{Path: "p", Err: reason}
	lock := locks.Error{Op: "acquire", Name: "a", Kind: locks.ErrHeld, Err: &rejected}

	address := regexp.MustCompile(`0x[0-9a-f]{4,}|wall:|%!`)
	for _, err := range []error{&rejected, &limit, &argument, &corrupt, &inUse, &lock} {
		if got := fmt.Sprintf("%+v", err); got != err.Error() {
			t.Errorf("%T: %%+v prints %q, want %q", err, got, err)
		}
		if got := fmt.Sprintf("%+v", struct{ Err error }{fmt.Errorf("step: %w", err)}); got != "{Err:step: "+err.Error()+"}" {
			t.Errorf("%T in a struct: %%+v prints %q", err, got)
		}
	}
	for _, value := range []any{rejected, limit, argument, corrupt, inUse, lock, mark, mark.Token} {
		if got := fmt.Sprintf("%+v", value); address.MatchString(got) {
			t.Errorf("%T: %%+v prints %q, which nobody can read", value, got)
		}
	}
}
