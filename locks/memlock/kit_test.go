package memlock_test

import (
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks/internal/wire"
	"github.com/fencedkv/fencedkv/locks/locktest"
)

// TestKit skips two parts: memlock has no session that could be revoked and no
// address with a password in it.
func TestKit(t *testing.T) {
	locktest.Run(t, func(*testing.T) *locktest.Service {
		return wire.Service(2500*time.Millisecond, wire.Wrap{})
	})
}
