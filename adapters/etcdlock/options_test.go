package etcdlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedkv/fencedkv/adapters/etcdlock"
	"github.com/fencedkv/fencedkv/locks"
)

func TestBadOptionsAreNamedWithTheRemedy(t *testing.T) {
	for want, opts := range map[string]*etcdlock.Options{
		"TTL is 500ms":          {TTL: 500 * time.Millisecond},
		"TTL is 2.5s":           {TTL: 2500 * time.Millisecond},
		"TTL is -1s":            {TTL: -time.Second},
		"MaxHold is -1ns":       {MaxHold: -1},
		"RequestTimeout is -1s": {RequestTimeout: -time.Second},
		"RequestTimeout is 4s":  {TTL: 3 * time.Second, RequestTimeout: 4 * time.Second},
		`Prefix "//"`:           {Prefix: "//"},
	} {
		_, newErr := etcdlock.New(new(clientv3.Client), opts)
		_, dialErr := etcdlock.Dial("etcd://127.0.0.1:2379", opts)
		for _, err := range []error{newErr, dialErr} {
			if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "give") {
				t.Errorf("%+v: got %v, want an error over ErrBadOption with %q and a remedy", opts, err, want)
			}
		}
	}
	if _, err := etcdlock.New(nil, nil); !errors.Is(err, locks.ErrBadOption) {
		t.Errorf("nil client: got %v, want ErrBadOption", err)
	}
}

func TestBadAddressesAreRefusedAndPasswordsNotPrinted(t *testing.T) {
	for address, want := range map[string]string{
		"":                                  "etcd://",
		"127.0.0.1:2379":                    "etcd://",
		"http://127.0.0.1:2379":             "etcd://",
		"secret@127.0.0.1:2379":             "etcd://",
		"redis://u:secret@127.0.0.1":        "etcd://",
		"etcd://":                           "host:port",
		"etcd://127.0.0.1":                  "server 1",
		"etcd://127.0.0.1:":                 "server 1",
		"etcd://127.0.0.1:http":             "server 1",
		"etcd://:2379":                      "server 1",
		"etcd://127.0.0.1:1,":               "server 2",
		"etcd://u:secret":                   "server 1",
		"etcd://u:secret@127.0.0.1":         "server 1",
		"etcd://u:secret@127.0.0.1:1/locks": "path",
		"etcd://127.0.0.1:1/secret":         "path",
		"etcd://u:secret%zz@127.0.0.1:2379": "percent-encoded",
		"etcd://secret@127.0.0.1:2379":      "user:password",
		"etcd://:secret@127.0.0.1:2379":     "user:password",
		"etcd://u:se/cret@127.0.0.1":        "server 1",
	} {
		_, err := etcdlock.Dial(address, nil)
		if !errors.Is(err, locks.ErrBadOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error over ErrBadOption with %q", address, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "se/cret")) {
			t.Errorf("%q: the password is in %v", address, err)
		}
	}
}

func TestDialOfSeveralServersSendsNothing(t *testing.T) {
	l, err := etcdlock.Dial("etcd://127.0.0.1:1,[::1]:1,nowhere.invalid:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
