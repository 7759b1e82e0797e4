package fencedkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// matter is what a question is about.
type matter struct {
	resource string
	token    fence.Token
}

// question is one that calls wait for, or that was answered with yes and the mark
// is not raised yet.
type question struct {
	matter matter
	cancel context.CancelFunc

	done    chan struct{} // closed when what follows is valid
	needed  bool          // it was asked
	latency time.Duration
	no      *fence.UnverifiedError // nil if the token is confirmed

	// Guarded by verification.mu.
	waiters int
	heard   bool // by the hook
}

// join takes part in the question about a claim, and asks it if nobody has.
func (v *verification) join(ctx context.Context, c engine.Claim) *question {
	m := matter{c.Resource, c.Token}
	v.mu.Lock()
	defer v.mu.Unlock()
	q := v.asked[m]
	if q == nil {
		q = &question{matter: m, done: make(chan struct{})}
		// It goes on when the caller has gone, if others wait by then.
		ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(v.closing, q.cancel)
		v.asked[m] = q
		v.work.Go(func() {
			defer stop()
			defer q.cancel()
			v.put(ctx, q, c)
		})
	}
	q.waiters++
	return q
}

// await returns nil and nil if the token is confirmed or need not be; no is why it
// is not.
func (v *verification) await(ctx context.Context, q *question) (no *fence.UnverifiedError, err error) {
	select {
	case <-q.done:
	case <-v.closing.Done():
		return nil, v.store.closed()
	case <-ctx.Done():
		return q.unverified(fence.ErrNoAnswer, engine.Ended(ctx)), nil
	}
	if q.no != nil && v.closing.Err() != nil {
		return nil, v.store.closed()
	}
	if hook := v.store.hooks.Verification; hook != nil && q.needed && v.first(q) {
		info := VerificationInfo{Resource: q.matter.resource, Token: q.matter.token, Latency: q.latency}
		if q.no != nil {
			info.Err = q.no
		}
		v.store.hook(func() { hook(info) })
	}
	return q.no, nil
}

// first reports whether nobody has told the hook of the answer yet.
func (v *verification) first(q *question) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	heard := q.heard
	q.heard = true
	return !heard
}

// leave ends a question that nobody waits for any more.
func (v *verification) leave(q *question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if q.waiters--; q.waiters == 0 {
		q.cancel()
		v.drop(q)
	}
}

// forget lets the next call ask anew.
func (v *verification) forget(q *question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop(q)
}

// drop is called with v.mu held.
func (v *verification) drop(q *question) {
	if v.asked[q.matter] == q {
		delete(v.asked, q.matter)
	}
}

// put puts a question to the verifiers.
func (v *verification) put(ctx context.Context, q *question, c engine.Claim) {
	defer func() {
		if !q.needed || q.no != nil {
			v.forget(q)
		}
		close(q.done)
	}()
	// Another call may have raised the mark between this call's look and its
	// question.
	_, raise, err := v.store.engine.Raises(c)
	if q.needed = raise && err == nil; !q.needed {
		return
	}
	began := time.Now()
	q.no = q.unverified(fence.ErrNoAnswer, errNoReturn) // a verifier may call runtime.Goexit
	q.no = v.ask(ctx, q)
	q.latency = time.Since(began)
}

var errNoReturn = errors.New("the verifier did not return")

// ask returns nil if a verifier confirms the token.
func (v *verification) ask(ctx context.Context, q *question) *fence.UnverifiedError {
	var away, foreign *fence.UnverifiedError
	for _, verifier := range v.verifiers {
		u := v.askOne(ctx, q, verifier)
		switch {
		case u == nil:
			return nil
		case errors.Is(u.Reason, fence.ErrNotGranted):
			return u
		case errors.Is(u.Reason, fence.ErrNoVerifier):
			if foreign == nil || foreign.Err == nil {
				foreign = u
			}
		case away == nil:
			away = u // another one may know the lineage too, and answer
		}
	}
	if away != nil {
		return away
	}
	return foreign
}

// askOne asks one verifier. One that panics would end the process: none of the
// callers is on this goroutine.
func (v *verification) askOne(ctx context.Context, q *question, verifier fence.Verifier) (u *fence.UnverifiedError) {
	_ = v.store.within(ctx, func(ctx context.Context) error {
		defer func() {
			if p := recover(); p != nil {
				u = q.unverified(fence.ErrNoAnswer, fmt.Errorf("the verifier panicked: %v", p))
			}
		}()
		u = q.answer(verifier.Verify(ctx, q.matter.resource, q.matter.token))
		return nil
	})
	return u
}

// answer is what a verifier's error says.
func (q *question) answer(err error) *fence.UnverifiedError {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*fence.UnverifiedError](err); ok && u.Reason != nil {
		return u
	}
	for _, reason := range []error{fence.ErrNotGranted, fence.ErrNoVerifier} {
		if errors.Is(err, reason) {
			return q.unverified(reason, err)
		}
	}
	return q.unverified(fence.ErrNoAnswer, err)
}

func (q *question) unverified(reason, err error) *fence.UnverifiedError {
	return &fence.UnverifiedError{Resource: q.matter.resource, Offered: q.matter.token, Reason: reason, Err: err}
}
