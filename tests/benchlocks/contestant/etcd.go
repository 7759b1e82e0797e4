package contestant

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
)

// OursEtcd is adapters/etcdlock.
func OursEtcd(addr string) Open {
	return func(context.Context) (Contender, error) {
		l, err := etcdlock.Dial("etcd://"+addr, &etcdlock.Options{TTL: leaseTime})
		if err != nil {
			return nil, err
		}
		return &ours{Locker: l}, nil
	}
}

// Mutex is concurrency.Mutex on one session for all its locks.
func Mutex(addr string) Open {
	return func(ctx context.Context) (Contender, error) {
		client, err := newEtcd(addr)
		if err != nil {
			return nil, err
		}
		session, err := newSession(ctx, client)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		return &mutex{client, session}, nil
	}
}

// MutexSession is concurrency.Mutex on a session for each lock.
func MutexSession(addr string) Open {
	return func(context.Context) (Contender, error) {
		client, err := newEtcd(addr)
		if err != nil {
			return nil, err
		}
		return &mutex{client: client}, nil
	}
}

func newEtcd(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, DialTimeout: leaseTime, Logger: zap.NewNop()})
}

func newSession(ctx context.Context, client *clientv3.Client) (*concurrency.Session, error) {
	return concurrency.NewSession(client, concurrency.WithTTL(int(leaseTime/time.Second)), concurrency.WithContext(ctx))
}

type mutex struct {
	client  *clientv3.Client
	session *concurrency.Session // nil: one for each lock
}

func (m *mutex) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	session, end := m.session, func() error { return nil }
	if session == nil {
		var err error
		if session, err = newSession(ctx, m.client); err != nil {
			return nil, err
		}
		end = session.Close
	}
	lock := concurrency.NewMutex(session, "mutex/"+name)
	if err := lock.Lock(ctx); err != nil {
		return nil, errors.Join(err, end())
	}
	return func(ctx context.Context) error {
		return errors.Join(lock.Unlock(ctx), end())
	}, nil
}

func (m *mutex) Close() error {
	var err error
	if m.session != nil {
		err = m.session.Close()
	}
	return errors.Join(err, m.client.Close())
}
