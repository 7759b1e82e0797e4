package servers

import (
	"errors"
	"os"
	"testing"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

// UnavailablePrefix begins the message of every skip that this package makes.
const UnavailablePrefix = "servers: unavailable: "

// unavailable ends the test. Only a program that is not there and cannot be
// installed is a reason to skip, and not even that in CI.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, provision.ErrUnavailable) {
		t.Fatalf("servers: %v", err)
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s%v (a failure because CI=true)", UnavailablePrefix, err)
	}
	t.Skipf("%s%v", UnavailablePrefix, err)
}
