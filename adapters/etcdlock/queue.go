package etcdlock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// await returns nil when e is the first of its queue, as read after the last
// event; errAgain if its key is gone or its session has come to its end; and
// any other error if ctx is done or etcd refuses.
func (a *attempt) await(ctx context.Context, e *entry, before key) error {
	var w *watch
	defer func() { w.stop() }()
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		// The watch starts from now, and the queue is read when it has
		// started. A watch from the revision that was read would miss nothing
		// either, but in a busy cluster that is in the past, and etcd serves
		// such watches only every 100 ms.
		if w == nil || w.key != before {
			w.stop()
			w = a.watch(before)
		}
		poll.Reset(a.opts.ttl())
		select {
		case event := <-w.events:
			if event.err != nil {
				a.log.Warn("etcdlock: watch", "lock", a.name, "error", event.err)
				w.stop()
				w = nil
				sleep(ctx, retryPause)
			}
		case <-poll.C: // in case that an event was lost
		case <-e.gone:
			return errAgain
		case <-e.s.retired:
			return errAgain
		case <-ctx.Done():
			return ctx.Err()
		}
		first, err := a.look(ctx, e, &before)
		if first || err != nil {
			return err
		}
	}
}

// look reads the queue, again and again while etcd is away, and reports whether
// e is the first; otherwise it sets before.
func (a *attempt) look(ctx context.Context, e *entry, before *key) (first bool, err error) {
	for {
		request, cancel := a.request(ctx)
		prev, err := e.look(request)
		cancel()
		switch {
		case err == nil:
			*before = prev
			return prev.isZero(), nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.Is(err, errNotThere):
			return false, errAgain
		case permanent(err):
			return false, err
		}
		a.seen = a.failure("acquire", a.name, err)
		select {
		case <-e.s.retired:
			return false, errAgain
		default:
			sleep(ctx, retryPause)
		}
	}
}

// watch tells when a key is deleted.
type watch struct {
	key    key
	events chan event
	cancel context.CancelFunc
}

// event says that the queue is to be read: the watch has started, the key was
// deleted, or (err) the watch has come to its end.
type event struct{ err error }

func (a *attempt) watch(k key) *watch {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(a.closing))
	w := &watch{key: k, events: make(chan event), cancel: cancel}
	tell := func(e event) {
		select {
		case w.events <- e:
		case <-ctx.Done():
		}
	}
	a.group.Go(func() {
		defer cancel()
		for resp := range a.client.Watch(ctx, string(k), clientv3.WithCreatedNotify(), clientv3.WithFilterPut()) {
			if err := resp.Err(); err != nil {
				tell(event{err})
				return
			}
			if resp.Created || len(resp.Events) > 0 {
				tell(event{})
			}
		}
		tell(event{errors.New("it ended without a reason")})
	})
	return w
}

func (w *watch) stop() {
	if w != nil {
		w.cancel()
	}
}
