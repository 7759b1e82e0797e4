package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

// EtcdOptions are the settings of one etcd server; nil means the defaults.
type EtcdOptions struct {
	// Fsync makes every write reach the disk before it is acknowledged. By
	// default data survives Kill, but would not survive the machine.
	Fsync bool
	// TLS makes Addr a port for TLS.
	TLS *Certificate
	// ClientCertificates makes it demand one, see [Certificate.OwnerConfig].
	ClientCertificates bool
	// Flags are more arguments of etcd. The default has a heartbeat of 20 ms
	// and an election timeout of 200 ms, which allows leases of 1 s.
	Flags []string
}

// Etcd is an etcd cluster of one member.
type Etcd struct{ *instance }

// StartEtcd starts an etcd server of the test's own; nil options are the
// defaults.
func StartEtcd(t testing.TB, opts *EtcdOptions) *Etcd {
	t.Helper()
	s, err := newEtcd(t.Context(), opts)
	return &Etcd{own(t, s, err)}
}

func newEtcd(ctx context.Context, opts *EtcdOptions) (*instance, error) {
	path, err := provision.Etcd(ctx, nil)
	if err != nil {
		return nil, err
	}
	return newInstance(&etcdProgram{path: path, opts: orDefaults(opts)})
}

type etcdProgram struct {
	path string
	opts EtcdOptions
	// The peer port is part of the member's identity: it stays for as long as
	// the client port does.
	port, peer int
	// Of a member of a cluster: its name, and the peer addresses of all.
	member, cluster string
}

func (*etcdProgram) name() string { return "etcd" }

func (e *etcdProgram) command(dir string, port int) (*exec.Cmd, error) {
	if e.port != port {
		peer, err := freePort()
		if err != nil {
			return nil, err
		}
		e.port, e.peer = port, peer
	}
	client := fmt.Sprintf("%s://127.0.0.1:%d", e.scheme(), port)
	peer := fmt.Sprintf("http://127.0.0.1:%d", e.peer)
	name, cluster := "test", "test="+peer
	if e.cluster != "" {
		name, cluster = e.member, e.cluster
	}
	args := []string{
		"--name", name,
		"--data-dir", filepath.Join(dir, "data", "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", cluster,
		"--heartbeat-interval", "20", "--election-timeout", "200",
		"--log-level", "warn",
	}
	if !e.opts.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	if c := e.opts.TLS; c != nil {
		args = append(args, "--cert-file", c.CertFile, "--key-file", c.KeyFile)
		if e.opts.ClientCertificates {
			args = append(args, "--client-cert-auth", "--trusted-ca-file", c.CertFile)
		}
	}
	return exec.Command(e.path, append(args, e.opts.Flags...)...), nil
}

func (e *etcdProgram) scheme() string {
	if e.opts.TLS != nil {
		return "https"
	}
	return "http"
}

func (e *etcdProgram) ready(ctx context.Context, addr string) error {
	resp, err := e.get(ctx, addr, "/health")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct{ Health, Reason string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Health != "true" {
		return fmt.Errorf("health is %q: %s", answer.Health, answer.Reason)
	}
	return nil
}

// get asks for a page. Closing the answer's body ends the connection.
func (e *etcdProgram) get(ctx context.Context, addr, path string) (*http.Response, error) {
	conn, err := dial(ctx, addr, e.opts.TLS)
	if err != nil {
		return nil, err
	}
	resp, err := ask(conn, addr, path)
	if err != nil {
		conn.Close()
		return nil, err
	}
	resp.Body = body{resp.Body, conn}
	return resp, nil
}

func ask(conn io.ReadWriter, host, path string) (*http.Response, error) {
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.0\r\nHost: "+host+"\r\n\r\n"); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(conn), nil)
}

// body closes the connection that it comes by.
type body struct {
	io.Reader
	io.Closer
}
