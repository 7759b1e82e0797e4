package servers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

const ensembleMembers = 3

// EnsembleOptions are the settings of a ZooKeeper ensemble; nil means the
// defaults.
type EnsembleOptions struct {
	// ZooKeeper is for each member.
	ZooKeeper ZooKeeperOptions
	// Route, if set, is the address at which member from looks for the port of
	// member to that followers and leader talk on, which is at addr: a proxy's,
	// for example. It is called before the members start, from the test's own
	// goroutine, and perhaps again if a port was taken.
	Route func(from, to int, addr string) string
}

// Ensemble is a ZooKeeper ensemble of three. Two of them serve.
type Ensemble struct{ Members []*ZooKeeper }

// StartEnsemble starts an ensemble of the test's own.
func StartEnsemble(t testing.TB, opts *EnsembleOptions) *Ensemble {
	t.Helper()
	java, err := provision.ZooKeeper(t.Context(), nil)
	if err != nil {
		unavailable(t, err)
	}
	group, err := newGroup(func() ([]member, error) { return planEnsemble(java, orDefaults(opts)) })
	ownGroup(t, group, err)
	e := &Ensemble{}
	for _, s := range group {
		e.Members = append(e.Members, &ZooKeeper{s})
	}
	return e
}

// Addrs are host:port of all members.
func (e *Ensemble) Addrs() []string { return addresses(e.Members) }

// Leader waits until one of the members that run leads, and the others follow
// it, and tells which.
func (e *Ensemble) Leader(t testing.TB) (leader int) {
	t.Helper()
	settled(t, func() (err error) {
		leader, err = theLeader(e.Members, (*ZooKeeper).mode)
		return err
	})
	return leader
}

func planEnsemble(java provision.Java, opts EnsembleOptions) ([]member, error) {
	ports, err := freePorts(3 * ensembleMembers)
	if err != nil {
		return nil, err
	}
	client, peer, election := ports[:3], ports[3:6], ports[6:]
	var members []member
	for i := range ensembleMembers {
		z := &zooKeeperProgram{java: java, opts: opts.ZooKeeper, id: i + 1}
		for j := range ensembleMembers {
			at := fmt.Sprintf("127.0.0.1:%d", peer[j])
			if i != j && opts.Route != nil {
				at = opts.Route(i, j, at)
			}
			z.ensemble = append(z.ensemble, fmt.Sprintf("server.%d=%s:%d", j+1, at, election[j]))
		}
		members = append(members, member{z, client[i]})
	}
	return members, nil
}

// mode is what the server says of itself: "leader", "follower", "standalone".
func (z *ZooKeeper) mode() (string, error) {
	answer, err := z.prog.(*zooKeeperProgram).ask(context.Background(), z.Addr())
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(answer, "Mode: ")
	mode, _, _ := strings.Cut(rest, "\n")
	return mode, nil
}
