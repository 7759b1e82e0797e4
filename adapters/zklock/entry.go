package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/locks"
)

// creation is one call that creates an entry.
type creation struct {
	call *call
	path string // valid when the call is done, without an error
	zxid int64  // only with UseZxid
}

// enter creates the own entry. When it returns nil, entry is set.
func (a *attempt) enter(ctx context.Context) error {
	err := a.create(ctx)
	for range 3 {
		if !errors.Is(err, zk.ErrNoNode) {
			break
		}
		if err = a.s.makePath(ctx, a.lock); err == nil {
			err = a.create(ctx)
		}
	}
	if err != nil {
		return err
	}
	_, seq, ok := parseEntry(path.Base(a.entry))
	if !ok {
		return fmt.Errorf("the server named an entry %q", a.entry)
	}
	return a.checkNumber(int64(seq))
}

// create sends one create. If its reply is lost it looks, in the same session,
// whether it was carried out: a session's requests over an old connection
// cannot be carried out any more once the session has moved to a new one.
func (a *attempt) create(ctx context.Context) error {
	if err := a.s.await(ctx); err != nil {
		return err
	}
	c := &creation{}
	var err error
	c.call, err = a.s.start(ctx, func(conn *zk.Conn) (err error) {
		c.path, c.zxid, err = a.send(conn)
		return err
	})
	if err != nil {
		return err
	}
	a.creating = c
	err = a.s.finish(ctx, c.call)
	if errors.Is(err, errAway) {
		return err
	}
	a.created(err)
	if !a.unsure {
		return err
	}
	if err := a.find(ctx); err != nil {
		return err
	}
	if a.entry == "" {
		return errLost
	}
	return nil
}

func (a *attempt) send(conn *zk.Conn) (string, int64, error) {
	prefix, data := a.lock+"/"+entryPrefix(a.id), []byte(a.holder)
	if !a.l.opts.useZxid() {
		created, err := conn.Create(prefix, data, zk.FlagEphemeral|zk.FlagSequence, a.s.acl())
		return created, 0, err
	}
	// The operations of one transaction have one zxid; the answer to setData
	// tells it.
	answers, err := conn.Multi(
		&zk.CreateRequest{Path: prefix, Data: data, Acl: a.s.acl(), Flags: zk.FlagEphemeral | zk.FlagSequence},
		&zk.SetDataRequest{Path: a.lock, Version: -1},
	)
	if err != nil {
		return "", 0, err
	}
	if len(answers) != 2 || answers[1].Stat == nil {
		return "", 0, errors.New("an answer to a transaction without its results")
	}
	return answers[0].String, answers[1].Stat.Mzxid, nil
}

// created takes the result of the create that was under way.
func (a *attempt) created(err error) {
	c := a.creating
	a.creating = nil
	switch {
	case err == nil:
		a.entry, a.zxid = c.path, c.zxid
	case !refused(err):
		a.unsure = true
	}
}

// find looks for the own entry after a create with an unknown outcome.
func (a *attempt) find(ctx context.Context) error {
	children, err := a.s.syncedChildren(ctx, a.lock)
	if err != nil {
		return err
	}
	if child := findEntry(children, a.id); child != "" {
		stat, err := a.s.exists(ctx, a.lock+"/"+child)
		if err != nil {
			return err
		}
		if stat != nil && stat.EphemeralOwner == a.s.sessionID() {
			a.entry, a.zxid = a.lock+"/"+child, stat.Czxid
		}
	}
	a.unsure = false
	return nil
}

// withdraw removes the entry of an attempt that has no grant, in the
// background. The session lives on until that is settled.
func (a *attempt) withdraw() {
	if a.creating == nil && !a.unsure && a.entry == "" {
		a.s.leave()
		return
	}
	if !a.l.group.Go(a.clean) {
		a.s.retire("it closes")
		a.s.leave()
	}
}

// clean removes the entry. If it cannot within the session timeout, the
// session is retired and takes the entry with it. Close ends the sessions
// anyway, so there is less patience then.
func (a *attempt) clean() {
	defer a.s.leave()
	ctx, cancel := context.WithTimeout(context.Background(), a.s.negotiated())
	defer cancel()
	stop := context.AfterFunc(a.l.open, func() { time.AfterFunc(a.l.opts.requestTimeout()/2, cancel) })
	defer stop()
	pause := 5 * time.Millisecond
	for {
		err := a.remove(ctx)
		if err == nil || a.s.isOver() || a.l.open.Err() != nil {
			return
		}
		if !sleep(ctx, pause) {
			a.s.retire("the removal of an entry could not be confirmed: " + err.Error())
			return
		}
		pause = min(2*pause, time.Second)
	}
}

func (a *attempt) remove(ctx context.Context) error {
	if a.creating != nil {
		err := a.s.finish(ctx, a.creating.call)
		if errors.Is(err, errAway) {
			return err
		}
		a.created(err)
	}
	if a.unsure {
		if err := a.find(ctx); err != nil {
			return err
		}
	}
	if a.entry == "" {
		return nil
	}
	return a.s.remove(ctx, a.entry)
}

// release removes the entry of a grant. The path has the attempt's id in it, so
// that it can be no other's.
func (a *attempt) release(ctx context.Context) error {
	unsure := false
	for {
		err := a.s.within(ctx, a.l.opts.requestTimeout()/2, func(c *zk.Conn) error { return c.Delete(a.entry, -1) })
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode) && unsure:
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return &locks.Error{Op: "release", Name: a.name, Kind: locks.ErrLost, Err: errGone}
		case a.s.isOver():
			return &locks.Error{Op: "release", Name: a.name, Kind: locks.ErrLost, Err: a.s.dead}
		case refused(err):
			return translate("release", a.name, err)
		}
		unsure = true
		if !sleep(ctx, 5*time.Millisecond) {
			return unreachable("release", a.name, err)
		}
	}
}

// settled ends the grant's part in the session.
func (a *attempt) settled(m *member, err error) {
	a.s.dropMember(m)
	if err != nil {
		a.s.retire("the release of a grant could not be confirmed: " + err.Error())
	}
	a.s.leave()
}
