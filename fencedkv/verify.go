package fencedkv

import (
	"context"
	"slices"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

// verification asks the lock services about tokens that would raise a mark.
//
// Asking comes before queueing, so that nobody waits for the answer but those who
// need it. The answer is noted in the claim, and the committer raises no mark
// without it: should a claim that needed none turn out to raise one after all, it
// comes back unanswered and is asked about then.
type verification struct {
	store     *Store
	verifiers []fence.Verifier
	closing   context.Context // ends when Close begins
	close     context.CancelFunc
	work      sync.WaitGroup // of questions

	mu    sync.Mutex
	asked map[matter]*question
}

func newVerification(s *Store, verifiers []fence.Verifier) *verification {
	v := &verification{store: s, verifiers: slices.Clone(verifiers), asked: make(map[matter]*question)}
	v.closing, v.close = context.WithCancel(context.Background())
	return v
}

// stop ends all questions; wait waits for that. v may be nil.
func (v *verification) stop() {
	if v != nil {
		v.close()
	}
}

func (v *verification) wait() {
	if v != nil {
		v.work.Wait()
	}
}

// decide is Engine.Do, after the verifiers were asked where they have to be.
func (s *Store) decide(ctx context.Context, tx *engine.Tx, run func(*engine.Tx) error) (engine.Report, error) {
	if s.verify == nil {
		return s.engine.Do(ctx, tx, run)
	}
	if err := tx.Fits(); err != nil {
		return engine.Report{}, err
	}
	for {
		report, err := s.askAndDo(ctx, tx, run)
		if _, unanswered := err.(*engine.UnansweredError); !unanswered { //nolint:errorlint // as the engine returns it
			return report, err
		}
	}
}

func (s *Store) askAndDo(ctx context.Context, tx *engine.Tx, run func(*engine.Tx) error) (engine.Report, error) {
	forget, err := s.verify.answer(ctx, tx)
	if err != nil {
		return engine.Report{}, err
	}
	defer forget() // run may panic
	return s.engine.Do(ctx, tx, run)
}

// answer asks about each claim of tx that would raise a mark, all at once, and
// returns the refusal of the first one. Calls that come before forget share the
// answers.
func (v *verification) answer(ctx context.Context, tx *engine.Tx) (forget func(), err error) {
	type asked struct {
		claim int
		mark  fence.Mark
		q     *question
	}
	var all []asked
	answered := false
	defer func() {
		if !answered {
			for _, a := range all {
				v.leave(a.q)
			}
		}
	}()
	for i, c := range tx.Claims() {
		if c.Verified {
			continue
		}
		mark, raise, err := v.store.engine.Raises(c)
		if err != nil {
			return nil, err
		}
		if raise {
			all = append(all, asked{i, mark, v.join(ctx, c)})
		}
	}
	for _, a := range all {
		no, err := v.await(ctx, a.q)
		switch m := a.q.matter; {
		case err != nil:
			return nil, err
		case no != nil:
			return nil, &fence.RejectedError{Resource: m.resource, Offered: m.token, Mark: a.mark, Reason: no}
		case a.q.needed:
			tx.Verified(a.claim)
		}
	}
	answered = true
	return func() {
		for _, a := range all {
			v.forget(a.q)
		}
	}, nil
}
