package zklock

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPort = "2181"
	defaultRoot = "/fencedkv"
)

// address is what "zk://user:password@host:port,host:port/root" says.
type address struct {
	servers []string // host:port
	root    string   // empty if the address has no path
	auth    *Auth
}

// parseAddress reads an address by hand: net/url takes no list of hosts, and
// its errors print the password.
func parseAddress(text string) (address, error) {
	rest := strings.TrimPrefix(text, "zk://")
	if scheme, _, ok := strings.Cut(rest, "://"); ok {
		return address{}, badOption("the address begins with %q; use zk://host:port,host:port/root", scheme+"://")
	}
	var a address
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, password, ok := strings.Cut(rest[:i], ":")
		user, errUser := url.PathUnescape(user)
		password, errPassword := url.PathUnescape(password)
		if !ok || user == "" || errUser != nil || errPassword != nil {
			return address{}, badOption("the part of the address before @ is no user:password; percent-encode what is special in it")
		}
		a.auth = &Auth{Scheme: "digest", Credential: []byte(user + ":" + password)}
		rest = rest[i+1:]
	}
	hosts, path, ok := strings.Cut(rest, "/")
	if ok && path != "" {
		a.root = "/" + strings.TrimSuffix(path, "/")
	}
	for _, host := range strings.Split(hosts, ",") {
		server, err := parseServer(host)
		if err != nil {
			return address{}, err
		}
		a.servers = append(a.servers, server)
	}
	return a, nil
}

func parseServer(text string) (string, error) {
	host, port := text, defaultPort
	switch {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case strings.Contains(text, ":"):
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", badOption("the server %q is no host:port", text)
		}
	}
	if host == "" {
		return "", badOption("the address has a server without a host; use zk://host:port,host:port/root")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", badOption("the server %q has no port of 1 to 65535", text)
	}
	return net.JoinHostPort(host, port), nil
}

// settle puts the address and the options together: where the root and the
// identity come from.
func (a address) settle(opts *Options) (root string, auth *Auth, err error) {
	root = a.root
	if opts != nil && opts.Root != "" {
		if root != "" && root != opts.Root {
			return "", nil, badOption("the address has the path %q and Root is %q; give one of the two", root, opts.Root)
		}
		root = opts.Root
	}
	if root == "" {
		root = defaultRoot
	}
	auth = opts.auth()
	if a.auth != nil {
		if auth != nil {
			return "", nil, badOption("the address has a user and Auth is set; give one of the two")
		}
		auth = a.auth
	}
	return root, auth, checkRoot(root)
}
