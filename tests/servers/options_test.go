package servers_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestRedisWithoutAppendOnlyForgets(t *testing.T) {
	s := servers.StartRedis(t, nil)
	k := kinds[0]
	k.mustPut(t, s)
	s.Restart(t)
	k.wantData(t, s, false)
}

func TestRedisPasswordAndUsers(t *testing.T) {
	s := servers.StartRedis(t, &servers.RedisOptions{
		Password: `pass "word"`,
		Config:   []string{"user alice on >secret ~mine:* +@all"},
	})
	for _, c := range []struct {
		user, password string
		want           string
	}{
		{"", "", "NOAUTH"},
		{"", `pass "word"`, ""},
		{"", "wrong", "WRONGPASS"},
		{"alice", "secret", "NOPERM"},
	} {
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: c.user, Password: c.password})
		err := client.Set(t.Context(), "other", "1", 0).Err()
		client.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("SET as %q with %q: %v, want %q", c.user, c.password, err, c.want)
		}
	}
}

func TestTLSIsSpoken(t *testing.T) {
	c := servers.NewCertificate(t)
	for name, start := range map[string]func(testing.TB) servers.Server{
		"redis": func(t testing.TB) servers.Server {
			return servers.StartRedis(t, &servers.RedisOptions{TLS: c})
		},
		"zookeeper": func(t testing.TB) servers.Server {
			return servers.StartZooKeeper(t, &servers.ZooKeeperOptions{TLS: c})
		},
		"etcd": func(t testing.TB) servers.Server {
			return servers.StartEtcd(t, &servers.EtcdOptions{TLS: c})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.Restart(t)
			conn, err := tls.Dial("tcp", s.Addr(), c.ClientConfig())
			if err != nil {
				t.Fatalf("with the certificate: %v", err)
			}
			conn.Close()
			conn, err = tls.Dial("tcp", s.Addr(), &tls.Config{ServerName: "127.0.0.1"})
			if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
				t.Errorf("without the certificate: %v, %v, want an unknown authority", conn, err)
			}
		})
	}
}
