package zklock_test

import (
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
	"github.com/fencedkv/fencedkv/tests/internal/zksession"
)

// closeSession ends a session of somebody else.
func (s *site) closeSession(t testing.TB, e entry) {
	t.Helper()
	bounded.Eventually(t, "the end of the session", func() bool {
		if err := zksession.Close(s.addr, e.owner); err != nil {
			t.Fatal(err)
		}
		there, _, err := s.direct.Exists(e.path)
		return err == nil && !there
	})
}
