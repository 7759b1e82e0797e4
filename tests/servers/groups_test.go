package servers_test

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/servers"
)

// wantAnotherLeader kills the leader, sees another, and the first one follow.
func wantAnotherLeader[S servers.Server](t *testing.T, members []S, leader func(testing.TB) int) {
	t.Helper()
	first := leader(t)
	members[first].Kill(t)
	second := leader(t)
	if second == first {
		t.Fatalf("member %d leads, and is dead", first)
	}
	members[first].Start(t)
	if got := leader(t); got != second {
		t.Errorf("member %d leads, want %d still", got, second)
	}
	members[second].Pause(t)
	members[second].Resume(t)
	leader(t)
}

func TestAnEnsembleElectsAnotherLeader(t *testing.T) {
	t.Parallel()
	routed := 0
	e := servers.StartEnsemble(t, &servers.EnsembleOptions{Route: func(_, _ int, addr string) string {
		routed++
		return addr
	}})
	if routed < 6 || routed%6 != 0 {
		t.Errorf("Route was asked %d times, want once for each member's way to each other", routed)
	}
	k := kinds[1]
	k.mustPut(t, e.Members[0])
	wantAnotherLeader(t, e.Members, e.Leader)
	k.wantData(t, e.Members[2], true)
}

func TestAnEtcdClusterElectsAnotherLeader(t *testing.T) {
	t.Parallel()
	c := servers.StartEtcdCluster(t, nil)
	k := kinds[2]
	k.mustPut(t, c.Members[0])
	wantAnotherLeader(t, c.Members, c.Leader)
	k.wantData(t, c.Members[2], true)
}

func TestSentinelsPromoteTheReplica(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinels(t, nil)
	if got := s.Master(t); got != 0 {
		t.Fatalf("member %d is master, want 0", got)
	}
	k := kinds[0]
	k.mustPut(t, s.Members[0])
	bounded.Eventually(t, "the write at the replica", func() bool {
		there, err := k.has(t.Context(), s.Members[1].Addr())
		return err == nil && there
	})
	s.LoseWrites(t)
	set(t, s.Members[0].Addr(), "lost")
	s.Members[0].Kill(t)
	s.Members[1].Resume(t)
	if got := s.Master(t); got != 1 {
		t.Fatalf("member %d is master, want 1", got)
	}
	k.wantData(t, s.Members[1], true)
	c := redis.NewClient(&redis.Options{Addr: s.Members[1].Addr()})
	defer c.Close()
	if n := c.Exists(t.Context(), "lost").Val(); n != 0 {
		t.Error("the new master has what was written after LoseWrites")
	}
}

func TestAClustersMasterIsReplaced(t *testing.T) {
	t.Parallel()
	c := servers.StartRedisCluster(t, &servers.ClusterOptions{Replicas: true})
	var owners []int
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		owners = append(owners, c.Owner(t, key))
	}
	slices.Sort(owners)
	if got := slices.Compact(owners); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("members %v own the keys, want 0, 1 and 2", got)
	}
	first := c.Owner(t, "a")
	c.Members[first].Kill(t)
	if got := c.Owner(t, "a"); got != first+3 {
		t.Errorf("member %d owns the key of %d, want its replica", got, first)
	}
}

func TestAClustersMasterComesBackWithItsData(t *testing.T) {
	t.Parallel()
	c := servers.StartRedisCluster(t, &servers.ClusterOptions{Redis: servers.RedisOptions{AppendOnly: true}})
	owner := c.Owner(t, "a")
	set(t, c.Members[owner].Addr(), "a")
	c.Members[owner].Restart(t)
	if got := c.Owner(t, "a"); got != owner {
		t.Errorf("member %d owns the key, want %d", got, owner)
	}
	client := redis.NewClient(&redis.Options{Addr: c.Members[owner].Addr()})
	defer client.Close()
	if n := client.Exists(t.Context(), "a").Val(); n != 1 {
		t.Error("the key is lost")
	}
}

func TestIndependentServersKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	all := servers.StartRedisServers(t, 3, nil)
	set(t, all[0].Addr(), "harness")
	for i, s := range all {
		kinds[0].wantData(t, s, i == 0)
	}
}

func set(t *testing.T, addr, key string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	if err := c.Set(context.Background(), key, "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
}
