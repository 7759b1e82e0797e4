package servers

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// dial connects for one readiness question, which has one second in all. A
// nil certificate is plain TCP.
func dial(ctx context.Context, addr string, c *Certificate) (net.Conn, error) {
	const limit = time.Second
	plain := &net.Dialer{Timeout: limit}
	var conn net.Conn
	var err error
	if c == nil {
		conn, err = plain.DialContext(ctx, "tcp", addr)
	} else {
		conn, err = (&tls.Dialer{NetDialer: plain, Config: c.OwnerConfig()}).DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(limit))
}
