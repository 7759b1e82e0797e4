package resource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/lockserver"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/locks/memlock"
)

// Config is the first line that the process reads.
type Config struct {
	Dir    string `json:"dir"` // it is removed when the process ends
	Secret string `json:"secret"`
	Lock   bool   `json:"lock"` // grant locks as well
}

// Ready is the first line that the process writes.
type Ready struct {
	URL string `json:"url"`
}

// Run serves the account until ctx ends, which is when the parent has gone. It
// removes the directory itself, so that not even a killed parent leaves it.
func Run(ctx context.Context, parent *process.Conn) (err error) {
	var c Config
	if err := parent.Receive(ctx, &c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Dir)) }()

	store, err := fencedkv.Open(filepath.Join(c.Dir, "accounts.db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	srv := loopback.NewServer(c.Secret)
	handle(srv, event.Unfenced, newPlain())
	handle(srv, event.Fenced, guarded{store.Resource(Name)})
	if c.Lock {
		// Numbers like those of the usual picture, in the act that counts.
		lockserver.Register(srv, memlock.NewServer(&memlock.ServerOptions{First: 30}))
	}
	return srv.Serve(ctx, func(url string) error { return parent.Send(Ready{url}) })
}

func handle(srv *loopback.Server, act string, account accountCopy) {
	steps := map[string]func(context.Context, message) (message, error){
		"raise": func(ctx context.Context, m message) (message, error) {
			return m, account.raise(ctx, m.Token)
		},
		"read": func(ctx context.Context, m message) (message, error) {
			balance, err := account.read(ctx)
			return message{Balance: balance}, err
		},
		"write": func(ctx context.Context, m message) (message, error) {
			return m, account.write(ctx, m.Token, m.Balance)
		},
	}
	for step, do := range steps {
		srv.Handle(path(act, step), func(ctx context.Context, decode func(any) error) (any, error) {
			var m message
			if err := decode(&m); err != nil {
				return nil, &loopback.StatusError{Status: http.StatusBadRequest, Text: fmt.Sprintf("bad request: %v", err)}
			}
			reply, err := do(ctx, m)
			if refused := (*fence.RejectedError)(nil); errors.As(err, &refused) {
				return nil, &loopback.StatusError{
					Status: http.StatusConflict, Text: refused.Error(), Body: encodeRefusal(refused),
				}
			}
			return reply, err
		})
	}
}
