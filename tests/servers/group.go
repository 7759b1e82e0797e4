package servers

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// member is a program and the port at which the others of its group look for
// it.
type member struct {
	prog program
	port int
}

// newGroup starts servers that name each other, all at once: none serves
// before most of them are there. If one finds a port taken, plan is asked for
// another group. If it cannot, nothing is left.
func newGroup(plan func() ([]member, error)) ([]*instance, error) {
	for try := 1; ; try++ {
		members, err := plan()
		if err != nil {
			return nil, err
		}
		group, err := startTogether(len(members), func(i int) (*instance, error) {
			dir, err := newWorkDir(members[i].prog.name())
			if err != nil {
				return nil, err
			}
			s := &instance{prog: members[i].prog, dir: dir, port: members[i].port}
			if err := s.start(true); err != nil {
				return nil, errors.Join(err, s.destroy())
			}
			return s, nil
		})
		if err == nil || !errors.Is(err, errPortTaken) || try == 5 {
			return group, err
		}
	}
}

// startTogether starts n servers. If one cannot start, nothing is left of the
// others.
func startTogether(n int, start func(i int) (*instance, error)) ([]*instance, error) {
	group, errs := make([]*instance, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { group[i], errs[i] = start(i) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return group, nil
	}
	for _, s := range group {
		if s != nil {
			err = errors.Join(err, s.destroy())
		}
	}
	return nil, err
}

// ownGroup gives all to the test.
func ownGroup(t testing.TB, group []*instance, err error) {
	t.Helper()
	if err != nil {
		unavailable(t, err)
	}
	for _, s := range group {
		own(t, s, nil)
	}
}

// freePorts is freePort, n times.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// settled waits until ask, which tells what is still missing, returns nil.
func settled(t testing.TB, ask func() error) {
	t.Helper()
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(4 * pollInterval) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("servers: not within %v: %v", readyTimeout, err)
		}
	}
}

// theLeader is the index of the one member that says it leads, while all the
// others that run say they follow.
func theLeader[S Server](members []S, role func(S) (string, error)) (int, error) {
	leader := -1
	for i, s := range members {
		if s.PID() == 0 {
			continue
		}
		r, err := role(s)
		switch {
		case err != nil:
			return -1, fmt.Errorf("member %d: %w", i, err)
		case r == "leader" && leader >= 0:
			return -1, fmt.Errorf("members %d and %d both say that they lead", leader, i)
		case r == "leader":
			leader = i
		case r != "follower":
			return -1, fmt.Errorf("member %d is neither leader nor follower: %q", i, r)
		}
	}
	if leader < 0 {
		return -1, errors.New("no member says that it leads")
	}
	return leader, nil
}

// addresses of servers.
func addresses[S Server](all []S) []string {
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}
