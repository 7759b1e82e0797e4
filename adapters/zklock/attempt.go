package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
)

// attempt is one try to get a lock, in one session.
type attempt struct {
	l      *Locker
	s      *session
	name   string
	lock   string // the lock node
	id     string
	holder string

	// What is known of the own entry.
	creating *creation // a create that is under way
	unsure   bool      // a create was lost with its connection
	entry    string    // its path, if it was there
	zxid     int64     // that created it; only with UseZxid
	stat     *zk.Stat  // of the lock node
	granted  bool      // the entry and the part in the session are a lease's
}

// attempt makes one attempt. If it returns an error, the entry is removed in
// the background. seen gets an error over locks.ErrHeld while others are
// before.
func (l *Locker) attempt(ctx context.Context, name string, try bool, seen *error) (lease *locks.Lease, err error) {
	s, err := l.join()
	if err != nil {
		return nil, err
	}
	a := &attempt{
		l: l, s: s, name: name, lock: l.root + "/" + escapeName(name),
		id: newID(), holder: locks.NewHolder(),
	}
	defer func() {
		if !a.granted {
			a.withdraw()
		}
	}()
	_, spent := l.spent.Load(a.lock)
	if try || spent {
		if err := a.look(ctx, try); err != nil {
			return nil, err
		}
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	if err := a.queue(ctx, try, seen); err != nil {
		return nil, err
	}
	return a.grant(ctx)
}

// look reads the lock node before an entry is made.
func (a *attempt) look(ctx context.Context, try bool) error {
	children, stat, err := a.s.children(ctx, a.lock)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	case try && taken(children):
		return a.held("")
	}
	return a.checkNumber(nextSequence(stat))
}

func (a *attempt) held(by string) error {
	e := &locks.Error{Op: "acquire", Name: a.name, Kind: locks.ErrHeld}
	if by != "" {
		e.Err = fmt.Errorf("the entry before is %s", by)
	}
	return e
}

// checkNumber looks how near the numbering is to its end.
func (a *attempt) checkNumber(seq int64) error {
	if seq >= warnSequence {
		if _, again := a.l.warned.LoadOrStore(a.lock, true); !again {
			a.s.config.log.Warn("zklock: half of the sequence numbers of the lock are used up; delete its node while nobody uses it",
				"node", a.lock, "next", seq)
		}
	}
	err := checkSequence(a.lock, seq)
	if err != nil {
		a.l.spent.Store(a.lock, true)
	} else {
		a.l.spent.Delete(a.lock)
	}
	return err
}

// queue waits until the own entry is the lowest. A watch may be lost, so it
// also reads again after each session timeout.
func (a *attempt) queue(ctx context.Context, try bool, seen *error) error {
	reread := time.NewTimer(time.Hour)
	defer reread.Stop()
	for {
		children, stat, err := a.s.children(ctx, a.lock)
		if errors.Is(err, zk.ErrNoNode) {
			return errGone
		}
		if err != nil {
			if a.again(ctx, err, seen) {
				continue
			}
			return err
		}
		place := stand(children, a.id)
		switch {
		case !place.exists:
			return errGone
		case place.before == "":
			a.stat = stat
			return nil
		case try:
			return a.held(place.before)
		}
		*seen = a.held(place.before)
		before := a.lock + "/" + place.before
		w, err := a.s.watch(ctx, before)
		if err != nil {
			if a.again(ctx, err, seen) {
				continue
			}
			return err
		}
		if w == nil {
			continue
		}
		reread.Reset(a.s.negotiated())
		fired := false
		select {
		case <-w.fired:
			fired = true
		case <-reread.C:
		case <-a.s.deadCh:
			err = a.s.dead
		case <-a.s.retiredCh:
			err = errRetired
		case <-ctx.Done():
			if a.s.isAway() {
				*seen = unreachable("acquire", a.name, a.s.away())
			}
			err = ctx.Err()
		}
		a.s.unwatch(before, w, fired)
		if err != nil {
			return err
		}
	}
}

// again reports whether a request of a waiting attempt is worth another try in
// the same session: its place in the queue lives on with it.
func (a *attempt) again(ctx context.Context, err error, seen *error) bool {
	if ctx.Err() != nil || refused(err) || a.s.isOver() {
		return false
	}
	*seen = unreachable("acquire", a.name, err)
	return sleep(ctx, 5*time.Millisecond)
}

// grant makes the lease. Its time counts from what the leader is known to have
// seen of the session; after a long wait that is too long ago, and then it asks
// the leader first.
func (a *attempt) grant(ctx context.Context) (*locks.Lease, error) {
	var none error
	sent, validity := a.s.lease()
	for locks.Elapsed(sent) > validity*2/3 {
		missing, err := a.s.check(ctx, []string{a.entry})
		switch {
		case err != nil && !a.again(ctx, err, &none):
			return nil, err
		case err == nil && missing >= 0:
			return nil, errGone
		}
		if sent, validity = a.s.lease(); locks.Elapsed(sent) > validity*2/3 && !sleep(ctx, validity/16) {
			return nil, ctx.Err()
		}
	}
	token, err := a.token(ctx)
	if err != nil {
		return nil, err
	}
	if a.s.isRetired() {
		return nil, errRetired
	}
	a.granted = true
	m := &member{path: a.entry, since: time.Now()}
	lease, control, err := a.l.group.NewLease(ctx, locks.Grant{
		Name:           a.name,
		Token:          token,
		Sent:           sent,
		Validity:       validity,
		MaxHold:        a.l.opts.maxHold(),
		Release:        a.release,
		ReleaseTimeout: a.l.opts.requestTimeout(),
		ReleaseWindow:  a.s.negotiated(),
		Settled:        func(err error) { a.settled(m, err) },
		Warn: func(what string, err error) {
			a.s.config.log.Warn("zklock: "+what, "lock", a.name, "error", err)
		},
	})
	if err != nil {
		return nil, err // and the grant is given back
	}
	m.control = control
	a.s.addMember(m)
	return lease, nil
}

func (a *attempt) token(ctx context.Context) (fence.Token, error) {
	if a.l.opts.useZxid() {
		root, err := a.s.rootStat(ctx, a.l.root)
		if err != nil {
			return fence.Token{}, err
		}
		return fence.Token{
			Seq: uint64(a.zxid), Holder: a.holder,
			Lineage: locks.Lineage("zkzxid", numbering(a.lock, root)),
		}, nil
	}
	_, seq, _ := parseEntry(path.Base(a.entry))
	return fence.Token{
		Seq: uint64(seq) + 1, Holder: a.holder,
		Lineage: locks.Lineage("zkseq", numbering(a.lock, a.stat)),
	}, nil
}
