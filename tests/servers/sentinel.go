package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

// SentinelMaster is what the Sentinels of [StartSentinels] call the master.
const SentinelMaster = "locks"

// Sentinels are two Redis servers, a master and its replica, watched by three
// Sentinels. They take a master for down that has not answered for a second,
// and then promote the replica, which takes another second or two.
//
// A server that is started again begins with the role that it had first, until
// the Sentinels tell it another: that takes them ten seconds and more.
type Sentinels struct {
	// Members are the first master and its replica.
	Members []*Redis
	// Watchers are the Sentinels.
	Watchers []Server
}

// StartSentinels starts five processes of the test's own; the options, which
// may be nil, are for the two servers and can have neither TLS nor a password.
func StartSentinels(t testing.TB, opts *RedisOptions) *Sentinels {
	t.Helper()
	path, err := provision.Redis(t.Context(), nil)
	if err != nil {
		unavailable(t, err)
	}
	group, err := newGroup(func() ([]member, error) { return planReplication(path, orDefaults(opts)) })
	ownGroup(t, group, err)
	s := &Sentinels{}
	for _, in := range group {
		s.Members = append(s.Members, &Redis{in})
	}
	// A Sentinel asks a master for its replicas at once, and then after 10 s.
	settled(t, s.Members[0].streams)
	group, err = newGroup(func() ([]member, error) { return planSentinels(path, s.Members[0].port) })
	ownGroup(t, group, err)
	for _, in := range group {
		s.Watchers = append(s.Watchers, in)
	}
	for _, w := range s.Watchers {
		settled(t, func() error { return s.knowsAll(w) })
	}
	return s
}

// Addrs are host:port of the Sentinels.
func (s *Sentinels) Addrs() []string { return addresses(s.Watchers) }

// Master waits until all Sentinels name the same member, and it answers that
// it is a master, and tells which. There may be another that says so.
func (s *Sentinels) Master(t testing.TB) (master int) {
	t.Helper()
	settled(t, func() (err error) {
		master, err = s.master()
		return err
	})
	return master
}

// LoseWrites lets the replica get nothing that is written from now on: it is
// paused, and the master hangs up. Resume ends the pause; a replica then finds
// its master again, if that still runs.
func (s *Sentinels) LoseWrites(t testing.TB) {
	t.Helper()
	s.Members[1].Pause(t)
	err := withRedis(s.Members[0].Addr(), func(ctx context.Context, c *redis.Client) error {
		return c.ClientKillByFilter(ctx, "TYPE", "replica").Err()
	})
	if err != nil {
		t.Fatalf("servers: hang up on the replica: %v", err)
	}
}

func (s *Sentinels) master() (int, error) {
	named := ""
	for _, w := range s.Watchers {
		err := withRedis(w.Addr(), func(ctx context.Context, c *redis.Client) error {
			host, err := c.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelMaster).StringSlice()
			if err != nil {
				return err
			}
			addr := host[0] + ":" + host[1]
			if named != "" && named != addr {
				return fmt.Errorf("the Sentinels name %s and %s", named, addr)
			}
			named = addr
			return nil
		})
		if err != nil {
			return -1, err
		}
	}
	for i, m := range s.Members {
		if m.Addr() != named {
			continue
		}
		if m.PID() == 0 {
			return -1, fmt.Errorf("the Sentinels name member %d, which does not run", i)
		}
		role, err := m.replication()
		if err == nil && role["role"] != "master" {
			err = fmt.Errorf("%s is a %s", named, role["role"])
		}
		return i, err
	}
	return -1, fmt.Errorf("the Sentinels name %q", named)
}

// knowsAll tells whether a Sentinel has found the replica and the others.
func (s *Sentinels) knowsAll(w Server) error {
	return withRedis(w.Addr(), func(ctx context.Context, c *redis.Client) error {
		state, err := c.Do(ctx, "SENTINEL", "MASTER", SentinelMaster).Result()
		if err != nil {
			return err
		}
		m, ok := state.(map[any]any)
		if !ok || m["flags"] != "master" || m["num-slaves"] != "1" || m["num-other-sentinels"] != "2" {
			return fmt.Errorf("a Sentinel knows %v", state)
		}
		return nil
	})
}

// streams tells whether a master that has no data yet sends its replica what
// is written. That begins up to a second after both have called the replica
// online.
func (s *Redis) streams() error {
	return withRedis(s.Addr(), func(ctx context.Context, c *redis.Client) error {
		var confirmed *redis.Cmd
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.FlushAll(ctx) // a write without a key
			confirmed = p.Do(ctx, "WAIT", 1, 300)
			return nil
		})
		if err != nil {
			return err
		}
		if n, err := confirmed.Int(); err != nil || n < 1 {
			return fmt.Errorf("%d replicas have confirmed a write: %w", n, err)
		}
		return nil
	})
}

func (s *Redis) replication() (state map[string]string, err error) {
	err = withRedis(s.Addr(), func(ctx context.Context, c *redis.Client) error {
		info, err := c.InfoMap(ctx, "replication").Result()
		state = info["Replication"]
		return err
	})
	return state, err
}

// withRedis lends a client for one question.
func withRedis(addr string, f func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	defer c.Close()
	return f(ctx, c)
}

func planReplication(path string, opts RedisOptions) ([]member, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	follower := opts
	follower.Config = append([]string{
		fmt.Sprintf("replicaof 127.0.0.1 %d", ports[0]),
	}, opts.Config...)
	opts.Config = append([]string{"repl-diskless-sync-delay 0"}, opts.Config...)
	return []member{
		{&redisProgram{path: path, opts: opts}, ports[0]},
		{&redisProgram{path: path, opts: follower}, ports[1]},
	}, nil
}

func planSentinels(path string, master int) ([]member, error) {
	const watchers = 3
	ports, err := freePorts(watchers)
	if err != nil {
		return nil, err
	}
	var members []member
	for _, port := range ports {
		members = append(members, member{&sentinelProgram{path, master}, port})
	}
	return members, nil
}

type sentinelProgram struct {
	path   string
	master int // port
}

func (*sentinelProgram) name() string { return "redis-sentinel" }

func (s *sentinelProgram) command(dir string, port int) (*exec.Cmd, error) {
	conf, err := writeConfig(dir, "sentinel.conf", []string{
		"bind 127.0.0.1",
		fmt.Sprintf("port %d", port),
		fmt.Sprintf("dir %q", filepath.Join(dir, "data")),
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", SentinelMaster, s.master),
		"sentinel down-after-milliseconds " + SentinelMaster + " 1000",
		"sentinel failover-timeout " + SentinelMaster + " 3000",
	})
	if err != nil {
		return nil, err
	}
	return exec.Command(s.path, conf, "--sentinel"), nil
}

func (*sentinelProgram) ready(ctx context.Context, addr string) error {
	return (&redisProgram{}).ready(ctx, addr)
}
