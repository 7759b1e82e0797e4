// Command install gets every server that the tests run: redis-server and
// ZooKeeper from Debian's packages (as root), etcd built from its Go module.
// It says what it does and which versions are there, and exits 1 if one of
// them cannot be had.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/fencedkv/fencedkv/tests/internal/provision"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(provision.All(ctx, os.Stdout))
}
