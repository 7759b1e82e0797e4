package play

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/client"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/loopback"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/resource"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
	"github.com/fencedkv/fencedkv/locks"
)

// The roles of the started processes.
const (
	RoleResource = "resource"
	RoleClient   = "client"
)

// cast is all that has to be taken away at the end.
type cast struct {
	service  service.Config
	dir      string
	secret   string
	url      string
	resource *process.Child
	a, b     *process.Child
	api      *loopback.Client
	locker   locks.Locker
	reached  bool // something may be left on the lock service
}

// assemble starts the resource process. If it returns an error nothing is left.
func assemble(ctx context.Context, lock service.Config) (_ *cast, err error) {
	c := &cast{service: lock, secret: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.dismiss(true))
		}
	}()
	if c.dir, err = os.MkdirTemp("", "fencedkv-demo-"); err != nil {
		return nil, err
	}
	c.resource, err = process.Start(process.Spec{
		Role: RoleResource, Name: "resource", Dir: c.dir,
		Config: resource.Config{Dir: c.dir, Secret: c.secret, Lock: lock.InProcess()},
	})
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var ready resource.Ready
	if err = c.resource.Receive(starting, &ready); err != nil {
		return nil, err
	}
	c.url = ready.URL
	c.api = loopback.NewClient(c.url, c.secret)
	return c, nil
}

const (
	startTimeout = 15 * time.Second
	quitTimeout  = 3 * time.Second
	cleanTimeout = 3 * time.Second
)

// account is one copy of the account.
func (c *cast) account(act string) *resource.Account { return resource.NewAccount(c.api, act) }

// lock acquires the account's lock for the parent. It does not wait, because
// nobody else knows the run's namespace: a service that does not answer is away.
func (c *cast) lock(ctx context.Context) (lease *locks.Lease, err error) {
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	for range 3 { // the first connection may be slow
		before := err
		lease, err = c.locker.TryAcquire(ctx, resource.Name)
		switch {
		case errors.Is(err, locks.ErrUnreachable):
			continue
		case errors.Is(err, context.DeadlineExceeded): // no answer until the time is over
			if before == nil {
				before = &locks.Error{Op: "acquire", Name: resource.Name, Kind: locks.ErrUnreachable, Err: err}
			}
			return nil, before
		}
		c.reached = true
		return lease, err
	}
	return nil, err
}

// open connects to the lock service. Opening takes no context, and waits for
// some services.
func (c *cast) open(ctx context.Context) error {
	type opened struct {
		locker locks.Locker
		err    error
	}
	result := make(chan opened, 1)
	go func() {
		locker, err := c.service.Open(c.api)
		result <- opened{locker, err}
	}()
	select {
	case o := <-result:
		c.locker = o.locker
		return o.err
	case <-ctx.Done(): // what is opened later ends with this process
		return locks.Cancelled(ctx, resource.Name, &locks.Error{Op: "dial", Kind: locks.ErrUnreachable})
	}
}

// startClients starts the two clients.
func (c *cast) startClients() (err error) {
	start := func(name string) (*process.Child, error) {
		return process.Start(process.Spec{
			Role: RoleClient, Name: "client-" + name, Dir: c.dir, DieWithParent: true,
			Config: client.Config{Client: name, URL: c.url, Secret: c.secret, Lock: c.service},
		})
	}
	if c.a, err = start(event.ClientA); err != nil {
		return err
	}
	c.b, err = start(event.ClientB)
	return err
}

// dismiss ends the clients, by force if there is no time for more, then removes
// what is on the service, then ends the resource process.
func (c *cast) dismiss(force bool) error {
	var ended sync.WaitGroup
	for _, child := range []*process.Child{c.a, c.b} {
		if child == nil {
			continue
		}
		ended.Go(func() {
			if force {
				child.Kill()
			} else {
				child.Quit(quitTimeout)
			}
		})
	}
	ended.Wait()

	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if c.locker != nil {
		_ = c.locker.Close(ctx) // what it leaves, Clean removes
	}
	if c.reached {
		errs = append(errs, c.service.Clean(ctx))
	}
	if c.api != nil {
		c.api.Close()
	}
	if c.resource != nil {
		c.resource.Quit(quitTimeout)
	}
	if c.dir != "" {
		if err := os.RemoveAll(c.dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the temporary directory: %w", err))
		}
	}
	return errors.Join(errs...)
}
