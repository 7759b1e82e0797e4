package lockserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// The calls of memlock.Backend. An attempt names itself by its id.
const (
	takePath    = "/lock/take"
	waitPath    = "/lock/wait"
	renewPath   = "/lock/renew"
	releasePath = "/lock/release"
)

type granted struct {
	Token fence.Token `json:"token"`
}

// Register serves b on srv.
func Register(srv *loopback.Server, b memlock.Backend) {
	srv.Handle(takePath, call(func(ctx context.Context, a memlock.Attempt) (any, error) {
		token, err := b.Take(ctx, a)
		return granted{token}, err
	}))
	srv.Handle(waitPath, call(func(ctx context.Context, a memlock.Attempt) (any, error) {
		return struct{}{}, b.Wait(ctx, a.Name, a.ID)
	}))
	srv.Handle(renewPath, call(func(ctx context.Context, a memlock.Attempt) (any, error) {
		return struct{}{}, b.Renew(ctx, a.Name, a.ID, a.TTL)
	}))
	srv.Handle(releasePath, call(func(ctx context.Context, a memlock.Attempt) (any, error) {
		return struct{}{}, b.Release(ctx, a.Name, a.ID)
	}))
}

func call(do func(context.Context, memlock.Attempt) (any, error)) loopback.Handler {
	return func(ctx context.Context, decode func(any) error) (any, error) {
		var a memlock.Attempt
		if err := decode(&a); err != nil {
			return nil, &loopback.StatusError{Status: http.StatusBadRequest, Text: fmt.Sprintf("bad request: %v", err)}
		}
		reply, err := do(ctx, a)
		for status, kind := range kinds {
			if errors.Is(err, kind) {
				return nil, &loopback.StatusError{Status: status, Text: err.Error()}
			}
		}
		return reply, err
	}
}

// kinds are the errors that a Backend must hand on, by their status.
var kinds = map[int]error{
	http.StatusConflict:            locks.ErrHeld,
	http.StatusGone:                locks.ErrLost,
	http.StatusNotFound:            locks.ErrBadName,
	http.StatusUnprocessableEntity: locks.ErrBadOption,
	http.StatusInsufficientStorage: locks.ErrUnsupported,
}
