package servers

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

// RedisOptions are the settings of one redis-server; nil means the defaults.
type RedisOptions struct {
	// AppendOnly keeps the data on disk (appendonly yes, appendfsync always),
	// so that it is there after Kill and Start. The default keeps nothing.
	AppendOnly bool
	// Password of the default user (requirepass). The default is none.
	Password string
	// TLS makes Addr a port for TLS.
	TLS *Certificate
	// ClientCertificates makes it demand one, see [Certificate.OwnerConfig].
	ClientCertificates bool
	// Config are more lines of redis.conf, ACL users for example:
	// "user alice on >secret ~* +@all". The default user must remain able to
	// PING with Password.
	Config []string
}

// Redis is one redis-server.
type Redis struct{ *instance }

// StartRedis starts a redis-server of the test's own; nil options are the
// defaults.
func StartRedis(t testing.TB, opts *RedisOptions) *Redis {
	t.Helper()
	s, err := newRedis(t.Context(), opts)
	return &Redis{own(t, s, err)}
}

// StartRedisServers starts n servers of the test's own that know nothing of
// each other, as Redlock wants them; the options are for each.
func StartRedisServers(t testing.TB, n int, opts *RedisOptions) []*Redis {
	t.Helper()
	ctx := t.Context()
	group, err := startTogether(n, func(int) (*instance, error) { return newRedis(ctx, opts) })
	ownGroup(t, group, err)
	var all []*Redis
	for _, s := range group {
		all = append(all, &Redis{s})
	}
	return all
}

func newRedis(ctx context.Context, opts *RedisOptions) (*instance, error) {
	path, err := provision.Redis(ctx, nil)
	if err != nil {
		return nil, err
	}
	return newInstance(&redisProgram{path: path, opts: orDefaults(opts)})
}

type redisProgram struct {
	path string
	opts RedisOptions
	bus  int // the port for other members of a Cluster
}

func (*redisProgram) name() string { return "redis-server" }

func (r *redisProgram) command(dir string, port int) (*exec.Cmd, error) {
	lines := []string{
		"bind 127.0.0.1",
		fmt.Sprintf("dir %q", filepath.Join(dir, "data")),
		"daemonize no",
		`save ""`,
		"appendonly no",
	}
	if c := r.opts.TLS; c != nil {
		authClients := "tls-auth-clients no"
		if r.opts.ClientCertificates {
			authClients = "tls-auth-clients yes"
		}
		lines = append(lines, "port 0", fmt.Sprintf("tls-port %d", port), authClients,
			fmt.Sprintf("tls-cert-file %q", c.CertFile),
			fmt.Sprintf("tls-key-file %q", c.KeyFile),
			fmt.Sprintf("tls-ca-cert-file %q", c.CertFile))
	} else {
		lines = append(lines, fmt.Sprintf("port %d", port))
	}
	if r.opts.AppendOnly {
		lines = append(lines, "appendonly yes", "appendfsync always")
	}
	if r.opts.Password != "" {
		lines = append(lines, fmt.Sprintf("requirepass %q", r.opts.Password))
	}
	lines = append(lines, r.opts.Config...)
	conf, err := writeConfig(dir, "redis.conf", lines)
	if err != nil {
		return nil, err
	}
	return exec.Command(r.path, conf), nil
}

func (r *redisProgram) ready(ctx context.Context, addr string) error {
	conn, err := dial(ctx, addr, r.opts.TLS)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	commands := [][]string{{"PING"}}
	if r.opts.Password != "" {
		commands = [][]string{{"AUTH", r.opts.Password}, {"PING"}}
	}
	var reply string
	for _, command := range commands {
		fmt.Fprintf(conn, "*%d\r\n", len(command))
		for _, arg := range command {
			fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(arg), arg)
		}
		if reply, err = in.ReadString('\n'); err != nil {
			return err
		}
	}
	if reply != "+PONG\r\n" {
		return fmt.Errorf("PING answered %q", reply)
	}
	return nil
}
