package contestant

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
)

// OursZooKeeper is adapters/zklock.
func OursZooKeeper(addr string) Open {
	return func(context.Context) (Contender, error) {
		l, err := zklock.Dial("zk://"+addr, &zklock.Options{SessionTimeout: sessionTime})
		if err != nil {
			return nil, err
		}
		return &ours{Locker: l}, nil
	}
}

// ZKLock is zk.Lock of github.com/go-zookeeper/zk.
func ZKLock(addr string) Open {
	return func(context.Context) (Contender, error) {
		conn, events, err := zk.Connect([]string{addr}, sessionTime, zk.WithLogger(silent{}))
		if err != nil {
			return nil, err
		}
		go func() {
			for range events { // or the library would drop them, with a warning
			}
		}()
		return &zkLock{conn}, nil
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

type zkLock struct{ conn *zk.Conn }

func (z *zkLock) Lock(_ context.Context, name string) (func(context.Context) error, error) {
	lock := zk.NewLock(z.conn, "/zklock/"+name, zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	return func(context.Context) error { return lock.Unlock() }, nil
}

func (z *zkLock) Close() error {
	z.conn.Close()
	return nil
}
