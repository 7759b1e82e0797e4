package locktest

import (
	"strings"
	"testing"
)

// NeedsOwnServer reports whether the subtest t, which called the factory, uses
// Service.Restart or Service.Pause. The factory must then give it a server that
// no other subtest uses; all others may share one, each in a namespace of its
// own. A factory that cannot start a server leaves both abilities nil.
func NeedsOwnServer(t testing.TB) bool {
	return strings.HasSuffix(t.Name(), "-own-server")
}

// Run checks every duty of the contract on the Lockers of the factory: one
// subtest per duty, and in it one per part of the duty.
func Run(t *testing.T, factory Factory) {
	t.Fatal("locktest: the kit is not written yet")
}
