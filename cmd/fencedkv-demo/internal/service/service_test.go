package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
)

func TestAddressesChooseTheServiceAndALeaseTimeThatSuitsIt(t *testing.T) {
	for _, c := range []struct {
		address string
		ttl     time.Duration
		shown   string
	}{
		{"memory", time.Second, "memory"},
		{"redis://h:6379", time.Second, "redis://h:6379"},
		{"redis://u:secret@h:6379/3", time.Second, "redis://h:6379/3"},
		{"rediss://:secret@[::1]:6379", time.Second, "rediss://[::1]:6379"},
		{"etcd://a:1,b:2", 2 * time.Second, "etcd://a:1,b:2"},
		{"etcds://u:sec%40ret@a:1,b:2", 2 * time.Second, "etcds://a:1,b:2"},
		{"zk://u:secret@a:1,b:2/x/y", 4 * time.Second, "zk://a:1,b:2/x/y"},
	} {
		got, err := service.New(c.address, 0)
		if err != nil {
			t.Errorf("New(%q): %v", c.address, err)
			continue
		}
		if got.TTL != c.ttl || got.String() != c.shown {
			t.Errorf("New(%q) = %v with %v, want %v with %v", c.address, got, got.TTL, c.shown, c.ttl)
		}
	}
}

func TestRunsDoNotShareANamespace(t *testing.T) {
	a, err := service.New("memory", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := service.New("memory", 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.Namespace == b.Namespace {
		t.Errorf("two runs have the namespace %q", a.Namespace)
	}
}

func TestBadAddressesAreUsageErrorsThatHideThePassword(t *testing.T) {
	for _, address := range []string{
		"", "secret", "memory:", "memory://x", "foo://u:secret@h:1", "u:secret@h",
		"redis://u:secret@h", "redis://u:secret%zz@h:1", "redis://u:secret@h:1/x", "redis://u:secret@h:99999",
		"etcd://u:secret@h", "etcd://u:secret@h:1/path", "etcd://u:secret%zz@h:1", "etcd://", "etcd://h:1,",
		"zk://u:secret@h:0/x", "zk://u:secret%zz@h:1",
	} {
		_, err := service.New(address, 0)
		if !errors.Is(err, service.ErrUsage) {
			t.Errorf("New(%q) = %v, want an error over ErrUsage", address, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("New(%q): the error shows the password: %v", address, err)
		}
	}
}

func TestAnAddressWithoutASchemeGetsOneByItsPort(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:6379":          "port 6379 is Redis's, so give redis://localhost:6379, or",
		"10.0.0.1:2379,b:2379":    "port 2379 is etcd's, so give etcd://10.0.0.1:2379,b:2379, or",
		"localhost:2181/path":     "port 2181 is ZooKeeper's, so give zk://localhost:2181, or",
		"[::1]:6379":              "so give redis://[::1]:6379, or",
		"u:secret@h:6379":         "so give redis://USER:PASSWORD@h:6379, or",
		"u:sec/secret@h:6379":     "has no scheme; give memory, redis://",
		"localhost:8500":          "has no scheme; give memory, redis://",
		"redis:localhost":         "has no scheme; give memory, redis://",
		"localhost":               "has no scheme; give memory, redis://",
		"consul://localhost:6379": `no lock service "consul"; give memory, redis://`,
		"memory://x":              "give memory alone",
	} {
		_, err := service.New(address, 0)
		if !errors.Is(err, service.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q) = %v, want a usage error with %q", address, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("New(%q): the error shows the password: %v", address, err)
		}
	}
}

func TestLeaseTimesOutOfRangeAreUsageErrors(t *testing.T) {
	for _, ttl := range []time.Duration{time.Nanosecond, service.MinTTL - 1, service.MaxTTL + 1} {
		if _, err := service.New("memory", ttl); !errors.Is(err, service.ErrUsage) {
			t.Errorf("New with %v = %v, want an error over ErrUsage", ttl, err)
		}
	}
}
