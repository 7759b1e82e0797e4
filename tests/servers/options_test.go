package servers_test

import (
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
