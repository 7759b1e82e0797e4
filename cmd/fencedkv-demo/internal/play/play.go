package play

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/client"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/resource"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
)

// Config is what a run needs.
type Config struct {
	Lock  service.Config
	Pause client.Pause
	Sink  event.Sink
	Warn  func(error) // receives what does not change the result
}

// The account at the beginning, and what each client takes from it.
const (
	deposit = 100
	amountA = 30
	amountB = 20
)

// Run plays both acts. When it returns, whatever the reason, every process that
// it started is gone, and so are the temporary directory and the run's namespace
// on the lock service, as far as the service can be reached.
func Run(ctx context.Context, c Config) (s event.Summary, err error) {
	p := &play{Config: c, began: time.Now()}
	cast, err := assemble(ctx, c.Lock)
	if err != nil {
		return s, err
	}
	defer func() {
		if left := cast.dismiss(err != nil); left != nil {
			c.Warn(left)
		}
	}()
	p.cast = cast

	if err := p.prepare(ctx); err != nil {
		return s, err
	}
	unfenced, err := p.act(ctx, event.Unfenced)
	if err != nil {
		return s, err
	}
	fenced, err := p.act(ctx, event.Fenced)
	if err != nil {
		return s, err
	}
	s = event.Summary{
		Name: event.SummaryName, AtMS: time.Since(p.began).Milliseconds(),
		LostUpdates: event.PerAct{Unfenced: unfenced.LostUpdates, Fenced: fenced.LostUpdates},
		Expected:    event.PerAct{Unfenced: unfenced.Expected, Fenced: fenced.Expected},
		Actual:      event.PerAct{Unfenced: unfenced.Actual, Fenced: fenced.Actual},
	}
	s.Shown = s.LostUpdates.Unfenced > 0 && s.LostUpdates.Fenced == 0 && s.Expected.Fenced == s.Actual.Fenced
	return s, c.Sink.Summary(s)
}

type play struct {
	Config
	began time.Time
	cast  *cast
}

func (p *play) emit(act string, e event.Event) error {
	e.Act, e.AtMS = act, time.Since(p.began).Milliseconds()
	return p.Sink.Event(e)
}

// prepare pays the deposit in, under the lock like any other write. That also
// shows that the service is there and keeps the lease time.
func (p *play) prepare(ctx context.Context) error {
	asking, cancel := context.WithTimeoutCause(ctx, reachable, fmt.Errorf("no answer in %v", reachable))
	defer cancel()
	lease, err := p.cast.lock(asking)
	if err != nil {
		return fmt.Errorf("lock service %s: %w", p.Lock, err)
	}
	for _, act := range []string{event.Unfenced, event.Fenced} {
		if err := p.cast.account(act).Write(ctx, lease.Token(), deposit); err != nil {
			return err
		}
	}
	if err := lease.Release(ctx); err != nil {
		return fmt.Errorf("lock service %s: %w", p.Lock, err)
	}
	if err := p.cast.startClients(); err != nil {
		return err
	}
	return p.emit("", event.Event{
		Name: event.Started, Lock: p.Lock.String(), TTLMS: p.Lock.TTL.Milliseconds(), Resource: resource.Name,
	})
}

// reachable bounds the first look at the lock service.
const reachable = 6 * time.Second

// KindOf sorts an error of Run.
func KindOf(err error) service.Kind {
	if failed, ok := errors.AsType[*client.Failure](err); ok {
		return failed.Kind
	}
	return service.KindOf(err)
}
