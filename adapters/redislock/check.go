package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedkv/fencedkv/locks"
)

// The take script needs SET with PXAT, which came with this version.
const (
	minMajor = 6
	minMinor = 2
)

// ready asks the server once per Locker who it is, with one INFO, before the
// first lock is taken. Later calls cost nothing.
func (l *Locker) ready(ctx context.Context) error {
	if l.checked.Load() {
		return nil
	}
	select {
	case l.checking <- struct{}{}:
		defer func() { <-l.checking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.checked.Load() {
		return nil
	}
	info, err := call(ctx, l, func(ctx context.Context) (string, error) { return l.client.Info(ctx).Result() })
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"), redis.HasErrorPrefix(err, unknownCommand):
		l.log.Debug("redislock: the server does not tell its version and eviction policy", "reason", err)
	case err != nil:
		return fmt.Errorf("ask the server for its version (INFO): %w", err)
	default:
		fields := parseInfo(info)
		if err := checkVersion(fields["redis_version"]); err != nil {
			return err
		}
		l.checkEviction(fields["maxmemory_policy"])
	}
	l.checked.Store(true)
	return nil
}

func (l *Locker) checkEviction(policy string) {
	switch policy {
	case "noeviction":
	case "":
		l.log.Debug("redislock: the server does not tell its eviction policy; it must be noeviction")
	default:
		l.log.Warn("redislock: the server may evict held locks; set maxmemory-policy to noeviction", "maxmemory-policy", policy)
	}
}

// checkVersion believes a server that names no version, as some managed ones.
func checkVersion(version string) error {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	if old := err == nil && (a < minMajor || a == minMajor && b < minMinor); !old {
		return nil
	}
	return &locks.Error{Op: "check version", Kind: locks.ErrUnsupported,
		Err: fmt.Errorf("the server is Redis %s; use %d.%d or newer", version, minMajor, minMinor)}
}

func parseInfo(info string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}
