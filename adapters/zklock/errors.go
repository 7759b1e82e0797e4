package zklock

import (
	"errors"
	"io"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/locks"
)

var (
	errAway    = errors.New("no answer from the server")
	errExpired = errors.New("the session has expired")
	errClosing = errors.New("the session was closed")
	errRetired = errors.New("the session takes no new grants")
	errGone    = errors.New("the own entry was deleted")
	errLost    = errors.New("the request was lost with its connection")
	errChanged = errors.New("the holder's entry went while it was read")
)

// refused reports whether err is the server's decision on a request, which it
// has then not carried out. After every other error that is not known.
func refused(err error) bool {
	for _, transport := range []error{
		zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved,
		errAway, errExpired, errClosing, errRetired, errGone, errLost, errChanged,
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
	} {
		if errors.Is(err, transport) {
			return false
		}
	}
	_, network := errors.AsType[net.Error](err)
	_, ours := errors.AsType[*locks.Error](err)
	return err != nil && !network && !ours
}

// translate makes an error of the client library one of package locks.
func translate(op, name string, err error) error {
	if ours, ok := errors.AsType[*locks.Error](err); ok {
		named := *ours
		if named.Name == "" {
			named.Name = name
		}
		return &named
	}
	kind := locks.ErrUnreachable
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		kind = locks.ErrBadOption
		err = errors.New(err.Error() + "; see Options.Auth")
	}
	// The library's errors are no part of the API.
	return &locks.Error{Op: op, Name: name, Kind: kind, Err: errors.New(err.Error())}
}

func unreachable(op, name string, err error) error {
	return &locks.Error{Op: op, Name: name, Kind: locks.ErrUnreachable, Err: errors.New(err.Error())}
}
