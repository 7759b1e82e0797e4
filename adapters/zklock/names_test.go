package zklock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/fencedkv/fencedkv/adapters/zklock"
	"github.com/fencedkv/fencedkv/locks"
)

const (
	idA = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	idB = "BBBBBBBBBBBBBBBBBBBBBBBBBB"
	idC = "CCCCCCCCCCCCCCCCCCCCCCCCCC"
)

func child(id string, seq int32) string { return fmt.Sprintf("_c_%s-lock-%010d", id, seq) }

func TestEveryNameIsANodeOfItsOwn(t *testing.T) {
	names := []string{"a", "A", "a/b", "a%2Fb", "a%2fb", "/", ".", "..", "...", "a.", "a..b", "%", "%25", "\x00", "a\x00",
		"ä", "a\u0308", "\xff", "\xc3", " ", "zookeeper", "_c_", strings.Repeat("n", locks.MaxName)}
	seen := make(map[string]string)
	for _, name := range names {
		node := zklock.EscapeName(name)
		if other, ok := seen[node]; ok {
			t.Errorf("%q and %q are both the node %q", name, other, node)
		}
		seen[node] = name
		if node == "" || node[0] == '.' || strings.ContainsFunc(node, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' }) {
			t.Errorf("the name %q is the node %q, which ZooKeeper may refuse", name, node)
		}
	}
	if got, want := zklock.EscapeName("accounts/42"), "accounts%2F42"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyOwnNamesAreEntries(t *testing.T) {
	for name, want := range map[string]int32{
		child(idA, 0):                                             0,
		child(idA, 7):                                             7,
		child(idA, 2147483647):                                    2147483647,
		child(idA, -2147483648):                                   -2147483648,
		child(idA, -5):                                            -5,
		"_c_" + idA + "-lock-12":                                  -1, // not as a server writes it
		"_c_" + idA + "-lock-+000000012":                          -1,
		"_c_" + idA + "-lock-9999999999":                          -1,
		"_c_" + idA + "-lease-0000000012":                         -1,
		"_c_" + strings.ToLower(idA) + "-lock-0000000012":         -1,
		"_c_0b5e7bd1-2b5e-4c6a-8d0e-5a5f0d9c3b11-lock-0000000012": -1, // Curator's
		"lock-0000000012":                                         -1,
		"":                                                        -1,
		"_c_":                                                     -1,
	} {
		id, seq, ok := zklock.ParseEntry(name)
		if wantOK := want != -1; ok != wantOK || ok && (seq != want || id != idA) {
			t.Errorf("%q: got %q, %d, %v, want %d, %v", name, id, seq, ok, want, wantOK)
		}
	}
}

func TestTheLowestNumberHoldsAndTheOthersWatchTheOneBefore(t *testing.T) {
	for _, tt := range []struct {
		what     string
		children []string
		exists   bool
		before   string
	}{
		{"alone", []string{child(idA, 3)}, true, ""},
		{"second", []string{child(idA, 3), child(idB, 2)}, true, child(idB, 2)},
		{"third, as integers", []string{child(idC, 2), child(idA, 1000000000), child(idB, 999999999)}, true, child(idB, 999999999)},
		{"first", []string{child(idB, 4), child(idA, 3), child(idC, 5)}, true, ""},
		{"not there", []string{child(idB, 4)}, false, ""},
		{"nobody", nil, false, ""},
		{"foreign children", []string{"lock-0000000000", "x", child(idA, 3)}, true, ""},
		{"after the wrap another is not before", []string{child(idB, -2147483648), child(idA, 3)}, true, ""},
		{"after the wrap itself does not hold", []string{child(idA, -2147483648), child(idB, 3)}, false, ""},
	} {
		exists, before := zklock.Stand(tt.children, idA)
		if exists != tt.exists || before != tt.before {
			t.Errorf("%s: got %v, %q, want %v, %q", tt.what, exists, before, tt.exists, tt.before)
		}
	}
}

func TestNextSequenceFollowsFromTheNodesVersion(t *testing.T) {
	for _, tt := range []struct {
		created  int64
		children int32
	}{{0, 0}, {1, 1}, {1, 0}, {5, 2}, {1 << 30, 3}, {1<<31 - 1, 0}, {1<<31 - 1, 77}} {
		shown := int32(2*tt.created - int64(tt.children)) // as a server computes it, in 32 bits
		got := zklock.NextSequence(&zk.Stat{Cversion: shown, NumChildren: tt.children})
		if got != tt.created {
			t.Errorf("%d created, %d there: got %d", tt.created, tt.children, got)
		}
	}
}

func TestOldVersionsAreRecognized(t *testing.T) {
	for answer, want := range map[string]string{
		"Zookeeper version: 3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf, built on 03/06/2019\nMode: standalone\n": "3.4",
		"Zookeeper version: 3.5.0-alpha, built on x\n":                                                                "",
		"Zookeeper version: 3.8.0-${mvngit.commit.id}, built on\n":                                                    "",
		"Zookeeper version: 3.10.1-x\n":                                                                               "",
		"Zookeeper version: 4.0.0-x\n":                                                                                "",
		"Zookeeper version: 2.9.0-x\n":                                                                                "2.9",
		"srvr is not executed because it is not in the whitelist.":                                                    "",
		"": "",
	} {
		if got := zklock.TooOld(answer); got != want {
			t.Errorf("%q: got %q, want %q", answer, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	auth := &zklock.Auth{Scheme: "digest", Credential: []byte("u:p@s/s")}
	for _, tt := range []struct {
		address string
		opts    *zklock.Options
		servers string
		root    string
		auth    string
	}{
		{"zk://zoo1:2181,zoo2:2182/locks", nil, "zoo1:2181 zoo2:2182", "/locks", ""},
		{"zoo1", nil, "zoo1:2181", "/fencedkv", ""},
		{"zk://zoo1/", &zklock.Options{Root: "/a/b"}, "zoo1:2181", "/a/b", ""},
		{"zk://zoo1/a/b/", &zklock.Options{Root: "/a/b"}, "zoo1:2181", "/a/b", ""},
		{"[::1]:99,[::2],10.0.0.1", nil, "[::1]:99 [::2]:2181 10.0.0.1:2181", "/fencedkv", ""},
		{"zk://u:p%40s%2Fs@zoo1/x", nil, "zoo1:2181", "/x", "u:p@s/s"},
		{"zk://u:p@s@zoo1/x", nil, "zoo1:2181", "/x", "u:p@s"},
		{"zoo1", &zklock.Options{Auth: auth}, "zoo1:2181", "/fencedkv", "u:p@s/s"},
	} {
		servers, root, got, err := zklock.ParseAddress(tt.address, tt.opts)
		if err != nil {
			t.Errorf("%s: %v", tt.address, err)
			continue
		}
		credential := ""
		if got != nil {
			credential = string(got.Credential)
		}
		if strings.Join(servers, " ") != tt.servers || root != tt.root || credential != tt.auth {
			t.Errorf("%s: got %v, %s, %s, want %v, %s, %s", tt.address, servers, root, credential, tt.servers, tt.root, tt.auth)
		}
	}
}

func TestBadAddressesAndOptionsAreRefusedWithoutTheirPassword(t *testing.T) {
	for _, tt := range []struct {
		address string
		opts    *zklock.Options
	}{
		{"", nil},
		{"zk://", nil},
		{"zk:///locks", nil},
		{"redis://zoo1", nil},
		{"zoo1,,zoo2", nil},
		{"zoo1:0", nil},
		{"zoo1:65536", nil},
		{"zoo1:x", nil},
		{"a:b:c", nil},
		{"zk://geheim@zoo1", nil},
		{"zk://:geheim@zoo1", nil},
		{"zk://u:geheim%zz@zoo1", nil},
		{"zk://u:geheim@zoo1", &zklock.Options{Auth: &zklock.Auth{Scheme: "digest"}}},
		{"zk://u:geheim@zoo1:x", nil},
		{"zoo1/zookeeper/x", nil},
		{"zoo1/a//b", nil},
		{"zoo1/a/../b", nil},
		{"zoo1/ä", nil},
		{"zoo1/" + strings.Repeat("a", 1024), nil},
		{"zoo1/a", &zklock.Options{Root: "/b"}},
		{"zoo1", &zklock.Options{Root: "/"}},
		{"zoo1", &zklock.Options{Root: "a"}},
		{"zoo1", &zklock.Options{SessionTimeout: -1}},
		{"zoo1", &zklock.Options{SessionTimeout: zklock.MinSessionTimeout - 1}},
		{"zoo1", &zklock.Options{SessionTimeout: zklock.DefaultSessionTimeout + 1}},
		{"zoo1", &zklock.Options{SessionTimeout: 1 << 62}},
		{"zoo1", &zklock.Options{MaxHold: -1}},
		{"zoo1", &zklock.Options{RequestTimeout: -1}},
		{"zoo1", &zklock.Options{Auth: &zklock.Auth{Credential: []byte("geheim")}}},
	} {
		l, err := zklock.Dial(tt.address, tt.opts)
		if l != nil || !errors.Is(err, locks.ErrBadOption) {
			t.Errorf("Dial(%q, %+v): got %v, %v, want an error over ErrBadOption", tt.address, tt.opts, l, err)
		}
		if strings.Contains(fmt.Sprint(err), "geheim") {
			t.Errorf("Dial(%q): the password is in %q", tt.address, err)
		}
	}
	auth := &zklock.Auth{Scheme: "digest", Credential: []byte("u:geheim")}
	opts := zklock.Options{Auth: auth}
	for _, text := range []string{fmt.Sprint(auth), fmt.Sprintf("%v", *auth), fmt.Sprintf("%+v", opts), fmt.Sprintf("%#v", auth)} {
		if strings.Contains(text, "geheim") {
			t.Errorf("the password is printed: %s", text)
		}
	}
}
