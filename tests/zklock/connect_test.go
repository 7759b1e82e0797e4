package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestNodesBelongToTheIdentityThatMadeThem(t *testing.T) {
	t.Parallel()
	s := shared(t)
	l := s.dial(t, "alice:geheim@"+s.addr, s.long())
	lease := bounded.Acquire(t, l, "x")
	if _, _, err := s.direct.Get(s.node("x")); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("somebody else reads the lock node: %v, want zk.ErrNoAuth", err)
	}
	opts := s.long()
	opts.Auth = &zklock.Auth{Scheme: "digest", Credential: []byte("alice:geheim")}
	if _, err := s.dial(t, s.addr, opts).TryAcquire(bounded.Context(t), "x"); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("the same identity: got %v, want ErrHeld", err)
	}
	for _, other := range []string{s.addr, "alice:verkehrt@" + s.addr} {
		for _, take := range []func(*zklock.Locker) error{
			func(l *zklock.Locker) error { _, err := l.TryAcquire(bounded.Context(t), "x"); return err },
			func(l *zklock.Locker) error { _, err := l.Acquire(bounded.Context(t), "x"); return err },
		} {
			err := take(s.dial(t, other, s.long()))
			if !errors.Is(err, locks.ErrBadOption) || errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "Options.Auth") {
				t.Errorf("another identity: got %v, want an error over ErrBadOption, not the library's, that names Options.Auth", err)
			}
		}
	}
	bounded.Release(t, lease)
}

func TestTheIdentityIsPresentedAgainOnANewConnection(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.long()
	opts.Auth = &zklock.Auth{Scheme: "digest", Credential: []byte("alice:geheim")}
	l := s.counted(t, opts)
	lease := bounded.Acquire(t, l, "x")
	l.Network.Reset(t)
	before := lease.Deadline()
	bounded.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(before) })
	bounded.Release(t, lease)
	bounded.Release(t, bounded.Acquire(t, l, "y"))
}

func TestAnUnknownSchemeIsABadOption(t *testing.T) {
	t.Parallel()
	s := shared(t)
	opts := s.long()
	opts.Auth = &zklock.Auth{Scheme: "unheard-of", Credential: []byte("geheim")}
	_, err := zklock.Dial(s.addr, opts)
	if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), "unheard-of") || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v, want an error over ErrBadOption that names the scheme and no credential", err)
	}
}

func TestTLSChecksTheServersName(t *testing.T) {
	t.Parallel()
	certificate := servers.NewCertificate(t) // for 127.0.0.1
	s := &site{addr: servers.StartZooKeeper(t, &servers.ZooKeeperOptions{TLS: certificate}).Addr(), root: "/test"}
	opts := s.long()
	opts.TLS = certificate.ClientConfig()
	opts.TLS.ServerName = "" // the name is the host of the address
	bounded.Release(t, bounded.Acquire(t, s.dial(t, s.addr, opts), "x"))

	opts = s.long()
	opts.TLS = certificate.ClientConfig()
	opts.TLS.ServerName = "zoo.example"
	_, err := zklock.Dial(s.addr, opts)
	if !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate for another name: got %v, want an error over ErrUnreachable that says so", err)
	}
}

// old is a path to the server on which srvr tells another version.
func old(t *testing.T, s *site, answer string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				first := make([]byte, 4)
				if _, err := io.ReadFull(client, first); err != nil {
					return
				}
				if string(first) == "srvr" {
					_, _ = io.WriteString(client, answer)
					return
				}
				server, err := net.Dial("tcp", s.addr)
				if err != nil {
					return
				}
				defer server.Close()
				_, _ = server.Write(first)
				go func() { _, _ = io.Copy(server, client); server.Close() }()
				_, _ = io.Copy(client, server)
			}()
		}
	}()
	return ln.Addr().String()
}

func TestAServerThatIsTooOldIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, err := zklock.Dial(old(t, s, "Zookeeper version: 3.4.14-4c25d480, built on 03/06/2019\n"), s.long())
	if !errors.Is(err, locks.ErrUnsupported) || !strings.Contains(err.Error(), "3.4") || !strings.Contains(err.Error(), "3.5") {
		t.Errorf("got %v, want an error over ErrUnsupported that names 3.4 and 3.5", err)
	}
	for _, answer := range []string{"srvr is not executed because it is not in the whitelist.\n", ""} {
		bounded.Release(t, bounded.Acquire(t, s.dial(t, old(t, s, answer), s.long()), "x"))
	}
}

func TestDialSaysWhyNobodyAnswers(t *testing.T) {
	t.Parallel()
	nobody := local(servers.FreePort(t))
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for {
			client, err := other.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(client, "SSH-2.0-OpenSSH_9.2p1\r\n")
			client.Close()
		}
	}()
	for _, tt := range []struct{ address, want string }{
		{nobody, nobody},
		{mute.Addr().String(), mute.Addr().String()},
		{other.Addr().String(), "no ZooKeeper server"},
	} {
		_, err := zklock.Dial(tt.address, &zklock.Options{SessionTimeout: time.Second})
		if !errors.Is(err, locks.ErrUnreachable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want an error over ErrUnreachable with %q", err, tt.want)
		}
	}
}

func TestACancelledAcquireSaysThatTheServiceIsAway(t *testing.T) {
	t.Parallel()
	srv := servers.StartZooKeeper(t, nil)
	s := newSite(t, srv.Addr())
	l := s.dial(t, s.addr, s.options())
	srv.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := l.Acquire(ctx, "x")
	if !errors.Is(err, locks.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) ||
		!errors.Is(err, locks.ErrUnreachable) || !strings.Contains(err.Error(), "dial tcp "+s.addr) {
		t.Errorf("got %v, want an error over ErrCancelled, context.DeadlineExceeded and ErrUnreachable that says why", err)
	}
}

// One server of the list is enough.
func TestAServerThatIsAwayIsPassedOver(t *testing.T) {
	t.Parallel()
	s := shared(t)
	nobody := local(servers.FreePort(t))
	for range 4 { // the order is random
		bounded.Release(t, bounded.Acquire(t, s.dial(t, nobody+","+s.addr+","+nobody, s.long()), "x"))
	}
}

// The client library prints to the standard logger unless it is kept from it.
func TestNothingIsPrintedAndALoggerGetsIt(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	defer log.SetOutput(os.Stderr)
	s := shared(t)
	for _, logger := range []hclog.Logger{nil, hclog.New(&hclog.LoggerOptions{Output: new(logged), Level: hclog.Trace})} {
		opts := s.long()
		opts.Logger = logger
		l := dial(t, s.addr, opts)
		bounded.Release(t, bounded.Acquire(t, l, "x"))
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	var kept logged
	opts := s.long()
	opts.Logger = hclog.New(&hclog.LoggerOptions{Output: &kept, Level: hclog.Debug})
	l := dial(t, "alice:geheim@"+s.addr, opts)
	bounded.Release(t, bounded.Acquire(t, l, "y"))
	bounded.Close(t, l)
	if kept.count("client library") == 0 || kept.count("geheim") != 0 {
		t.Errorf("the logger got %q, want what the library says and no password", kept.text.String())
	}
	if printed.Len() > 0 {
		t.Errorf("printed: %s", printed.String())
	}
}
