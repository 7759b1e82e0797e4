package prove_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/fencedkv/fencedkv/tests/servers"
)

// The variables that make the test binary one of the processes.
const (
	roleVariable   = "FENCEDKV_PROVE_ROLE"
	configVariable = "FENCEDKV_PROVE_CONFIG"
)

// The roles.
const (
	roleClient   = "client"
	roleResource = "resource"
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		servers.Main(m)
	case roleClient:
		err = play(runClient)
	case roleResource:
		err = play(runResource)
	default:
		err = fmt.Errorf("%s is %q, which is no role", roleVariable, role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play runs a process until its parent closes its standard input.
func play[C any](run func(context.Context, C) error) error {
	var c C
	if err := json.Unmarshal([]byte(os.Getenv(configVariable)), &c); err != nil {
		return fmt.Errorf("%s: %w", configVariable, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return run(ctx, c)
}
