package zklock

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// The oldest server that is supported.
const (
	minMajor = 3
	minMinor = 5
)

var versionLine = regexp.MustCompile(`(?m)^Zookeeper version: (\d+)\.(\d+)\.`)

// checkVersion asks the server that the session is connected to. The protocol
// of clients does not tell the version, the four-letter command srvr does,
// unless it is switched off; a server that does not answer it passes.
func checkVersion(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	server := s.conn.Server()
	conn, err := s.config.dial(ctx, server)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return nil
	}
	answer, _ := io.ReadAll(io.LimitReader(conn, 64<<10))
	if version := tooOld(string(answer)); version != "" {
		return &locks.Error{Op: "dial", Kind: locks.ErrUnsupported,
			Err: fmt.Errorf("the server %s has version %s; use %d.%d or newer", server, version, minMajor, minMinor)}
	}
	return nil
}

// tooOld returns the version in an answer to srvr if it is not supported.
func tooOld(answer string) string {
	match := versionLine.FindStringSubmatch(answer)
	if match == nil {
		return ""
	}
	major, err1 := strconv.Atoi(match[1])
	minor, err2 := strconv.Atoi(match[2])
	if err1 != nil || err2 != nil || major > minMajor || major == minMajor && minor >= minMinor {
		return ""
	}
	return match[1] + "." + match[2]
}
