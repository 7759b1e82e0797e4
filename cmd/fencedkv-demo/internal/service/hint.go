package service

import (
	"fmt"
	"net"
	"strings"
)

// schemes are all addresses there are.
const schemes = "memory, redis://host:port, rediss://host:port, etcd://host:port,..., " +
	"etcds://host:port,... or zk://host:port,.../path"

// usual are the ports on which the services listen by default.
var usual = map[string]struct{ scheme, name string }{
	"6379": {"redis", "Redis"},
	"2379": {"etcd", "etcd"},
	"2181": {"zk", "ZooKeeper"},
}

// unknown says what is wrong with the scheme of the address, and what would be
// right. It shows no part that may be a password.
func (c Config) unknown() string {
	switch scheme := c.scheme(); {
	case scheme == "memory":
		return "memory takes no address; give memory alone"
	case scheme != "":
		return fmt.Sprintf("there is no lock service %q; give %s", scheme, schemes)
	}
	if guess := c.guess(); guess != "" {
		return fmt.Sprintf("the address has no scheme; %s, or give another of %s", guess, schemes)
	}
	return "the address has no scheme; give " + schemes
}

// guess goes by the port of the first host.
func (c Config) guess() string {
	authority, _, _ := strings.Cut(c.Address, "/")
	hidden := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority, hidden = authority[i+1:], "USER:PASSWORD@"
	}
	first, _, _ := strings.Cut(authority, ",")
	_, port, err := net.SplitHostPort(first)
	service, known := usual[port]
	if err != nil || !known {
		return ""
	}
	return fmt.Sprintf("port %s is %s's, so give %s://%s%s", port, service.name, service.scheme, hidden, authority)
}
