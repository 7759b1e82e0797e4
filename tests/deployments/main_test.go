package deployments_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/tests/servers"
)

func TestMain(m *testing.M) {
	if os.Getenv("REDIS_LOG") == "" {
		redis.SetLogger(silent{}) // servers that are away are what the tests are about
	}
	servers.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
