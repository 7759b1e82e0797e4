package service

import (
	"fmt"
	"net"
	"strconv"
)

// checkHost refuses what is not host:port.
func checkHost(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not host:port", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q: the port is not 1 to 65535", s)
	}
	return nil
}
