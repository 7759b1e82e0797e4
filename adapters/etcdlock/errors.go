package etcdlock

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fencedkv/fencedkv/locks"
)

// errAgain: the attempt came to nothing through no fault of its own, and is
// made again with a new key, on a new lease if need be.
var errAgain = errors.New("queue again")

func code(err error) codes.Code {
	var known rpctypes.EtcdError
	switch {
	case errors.As(err, &known):
		return known.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return status.Code(err)
}

// unanswered reports whether a request that returned err may have been carried
// out, or may be yet.
func unanswered(err error) bool {
	switch code(err) {
	case codes.OK:
		return false
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted:
		return true
	}
	return false
}

// permanent reports whether it is useless to send the request again.
func permanent(err error) bool {
	if e := (*locks.Error)(nil); errors.As(err, &e) {
		return !errors.Is(err, locks.ErrUnreachable) || e.Err != nil && permanent(e.Err)
	}
	var text *refusal
	if errors.As(err, &text) {
		return text.permanent
	}
	return !unanswered(err) && code(err) != codes.ResourceExhausted
}

func leaseGone(err error) bool {
	return errors.Is(err, rpctypes.ErrLeaseNotFound)
}

// refusal is what the driver said, as text: its errors, and those of contexts
// that belong to one request and not to the caller, are not part of the API.
type refusal struct {
	text      string
	permanent bool
}

func (r *refusal) Error() string { return r.text }

func (l *Locker) failure(op, name string, err error) error {
	return failure(op, name, l.opts, l.network, err)
}

// failure translates what the driver returned.
func failure(op, name string, opts *Options, link *network, err error) error {
	if e := (*locks.Error)(nil); errors.As(err, &e) {
		return err
	}
	kind := locks.ErrUnreachable
	text := err.Error()
	switch c := code(err); {
	case errors.Is(err, rpctypes.ErrLeaseTTLTooLarge):
		kind = locks.ErrBadOption
		text = fmt.Sprintf("TTL is %v: %v", opts.ttl(), err)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrInvalidAuthToken),
		errors.Is(err, rpctypes.ErrUserEmpty), c == codes.Unauthenticated:
		text = fmt.Sprintf("etcd wants another user or password: %v", err)
	case c == codes.PermissionDenied:
		text = fmt.Sprintf("the user needs read and write permission on the prefix %q: %v", opts.prefix()+"/", err)
	case c == codes.DeadlineExceeded:
		text = fmt.Sprintf("no answer in time (requests have %v)", opts.requestTimeout())
		if why := link.reason(); why != "" {
			text += ": " + why
		}
	}
	return &locks.Error{Op: op, Name: name, Kind: kind, Err: &refusal{text, permanent(err)}}
}
