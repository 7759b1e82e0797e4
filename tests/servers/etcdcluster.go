package servers

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

const etcdMembers = 3

// EtcdCluster is an etcd cluster of three. Two of them serve.
type EtcdCluster struct{ Members []*Etcd }

// StartEtcdCluster starts a cluster of the test's own; the options, which may
// be nil, are for each member.
func StartEtcdCluster(t testing.TB, opts *EtcdOptions) *EtcdCluster {
	t.Helper()
	path, err := provision.Etcd(t.Context(), nil)
	if err != nil {
		unavailable(t, err)
	}
	group, err := newGroup(func() ([]member, error) { return planEtcdCluster(path, orDefaults(opts)) })
	ownGroup(t, group, err)
	c := &EtcdCluster{}
	for _, s := range group {
		c.Members = append(c.Members, &Etcd{s})
	}
	return c
}

// Addrs are host:port of all members.
func (c *EtcdCluster) Addrs() []string { return addresses(c.Members) }

// Leader waits until one of the members that run leads, and the others know a
// leader, and tells which.
func (c *EtcdCluster) Leader(t testing.TB) (leader int) {
	t.Helper()
	settled(t, func() (err error) {
		leader, err = theLeader(c.Members, (*Etcd).role)
		return err
	})
	return leader
}

func planEtcdCluster(path string, opts EtcdOptions) ([]member, error) {
	ports, err := freePorts(2 * etcdMembers)
	if err != nil {
		return nil, err
	}
	var peers []string
	for i := range etcdMembers {
		peers = append(peers, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, ports[etcdMembers+i]))
	}
	var members []member
	for i := range etcdMembers {
		members = append(members, member{&etcdProgram{
			path: path, opts: opts,
			port: ports[i], peer: ports[etcdMembers+i],
			member: fmt.Sprintf("m%d", i), cluster: strings.Join(peers, ","),
		}, ports[i]})
	}
	return members, nil
}

// role is what the server's metrics say.
func (s *Etcd) role() (string, error) {
	resp, err := s.prog.(*etcdProgram).get(context.Background(), s.Addr(), "/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	role := "lost"
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch lines.Text() {
		case "etcd_server_is_leader 1":
			return "leader", nil
		case "etcd_server_has_leader 1":
			role = "follower"
		}
	}
	return role, lines.Err()
}
