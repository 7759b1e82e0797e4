package zklock

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"
)

// acl is for the nodes that the session creates.
func (s *session) acl() []zk.ACL {
	if s.config.auth == nil {
		return zk.WorldACL(zk.PermAll)
	}
	return zk.AuthACL(zk.PermAll)
}

// makePath creates a persistent node and the nodes above it that are not
// there. It begins below: who may create a lock need not be allowed to create
// the root.
func (s *session) makePath(ctx context.Context, node string) error {
	err := s.makeNode(ctx, node)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err := s.makePath(ctx, path.Dir(node)); err != nil {
		return err
	}
	return s.makeNode(ctx, node)
}

func (s *session) makeNode(ctx context.Context, node string) error {
	err := s.do(ctx, func(c *zk.Conn) error {
		_, err := c.Create(node, nil, zk.FlagPersistent, s.acl())
		return err
	})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// exists returns nil for a node that is not there.
func (s *session) exists(ctx context.Context, node string) (*zk.Stat, error) {
	var found bool
	var stat *zk.Stat
	err := s.do(ctx, func(c *zk.Conn) (err error) {
		found, stat, err = c.Exists(node)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return stat, nil
}

// rootStat reads the root node once per session. If somebody deletes it while
// the session lives, the session's tokens go on in the lineage of the old one:
// transaction ids rise all the same.
func (s *session) rootStat(ctx context.Context, root string) (*zk.Stat, error) {
	s.mu.Lock()
	stat := s.root
	s.mu.Unlock()
	if stat != nil {
		return stat, nil
	}
	stat, err := s.exists(ctx, root)
	if err != nil {
		return nil, err
	}
	if stat == nil {
		return nil, errGone
	}
	s.mu.Lock()
	s.root = stat
	s.mu.Unlock()
	return stat, nil
}
