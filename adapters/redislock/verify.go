package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

var _ fence.Verifier = (*Locker)(nil)

// Verify implements fence.Verifier: it reads the lock that is named like the
// resource from the primary, with one script, and returns nil if t is its present
// grant. A lock that is reserved for a waiter has none. Any other answer is a
// *fence.UnverifiedError; with the reason fence.ErrNoAnswer it is also over
// locks.ErrUnreachable, or over locks.ErrCancelled or locks.ErrClosed. It takes
// at most Options.RequestTimeout.
//
// A primary that was replaced and has not been told yet answers as if it were
// the primary: see the package comment.
func (l *Locker) Verify(ctx context.Context, resource string, t fence.Token) error {
	refused := func(reason error, current fence.Token, err error) error {
		return &fence.UnverifiedError{Resource: resource, Offered: t, Reason: reason, Current: current, Err: err}
	}
	if want := lineage(l.prefix, resource); t.Lineage != want {
		return refused(fence.ErrNoVerifier, fence.Token{}, fmt.Errorf("the lock's tokens have the lineage %q", want))
	}
	end, err := l.group.Begin("verify", resource)
	if err != nil {
		return refused(fence.ErrNoAnswer, fence.Token{}, err)
	}
	defer end()
	k := newKeys(l.prefix, resource)
	text, err := call(ctx, l, func(ctx context.Context) (string, error) {
		reply, err := l.run(ctx, verifyScript, []string{k.lock(), k.queue()})
		if err != nil {
			return "", err
		}
		if text, ok := first(reply); ok {
			return text, nil
		}
		return "", fmt.Errorf("the verify script replied %s", shown(reply))
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return refused(fence.ErrNoAnswer, fence.Token{}, locks.Unanswered(ctx, resource, err))
	case err != nil:
		return refused(fence.ErrNoAnswer, fence.Token{}, failure("verify", resource, err))
	}
	current, err := parseGrant(text)
	switch {
	case err != nil:
		return refused(fence.ErrNotGranted, fence.Token{}, err)
	case current.Seq == 0:
		return refused(fence.ErrNotGranted, current, nil)
	case current.Seq != t.Seq || current.Holder != t.Holder:
		current.Lineage = t.Lineage
		return refused(fence.ErrNotGranted, current, nil)
	}
	return nil
}

func first(reply []any) (text string, ok bool) {
	if len(reply) != 1 {
		return "", false
	}
	text, ok = reply[0].(string)
	return text, ok
}

// parseGrant reads the text of the lock's key: the grant, the zero Token if the
// lock is free, or an error that says what there is instead.
func parseGrant(text string) (fence.Token, error) {
	number, holder, _ := strings.Cut(text, " ")
	switch {
	case text == "":
		return fence.Token{}, nil
	case number == "reserved":
		return fence.Token{}, fmt.Errorf("it is reserved for the waiter %q, which has no number yet", holder)
	}
	seq, err := strconv.ParseUint(number, 10, 53)
	if err != nil || seq == 0 {
		return fence.Token{}, fmt.Errorf("the lock's key is %q, which is no grant", text)
	}
	return fence.Token{Seq: seq, Holder: holder}, nil
}
