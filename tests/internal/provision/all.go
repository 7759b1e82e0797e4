package provision

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// All gets every server, tells out what it does and which versions are there,
// and returns the exit status: 1 if one of them cannot be had.
func All(ctx context.Context, out io.Writer) int {
	status := 0
	report := func(name string, err error, version func() string) {
		if err != nil {
			fmt.Fprintf(out, "%-13s MISSING: %v\n", name, err)
			status = 1
			return
		}
		fmt.Fprintf(out, "%-13s %s\n", name, version())
	}
	redis, err := Redis(ctx, out)
	report("redis-server", err, func() string { return firstLine(ctx, redis, "--version") })
	java, err := ZooKeeper(ctx, out)
	report("zookeeper", err, func() string {
		return firstLine(ctx, java.Path, "-cp", java.ClassPath, "org.apache.zookeeper.version.VersionInfoMain") +
			"; " + firstLine(ctx, java.Path, "-version")
	})
	etcd, err := Etcd(ctx, out)
	report("etcd", err, func() string { return firstLine(ctx, etcd, "--version") })
	return status
}

func firstLine(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	if err != nil {
		return fmt.Sprintf("%s: %v", name, err)
	}
	return line
}
