package etcdlock

import (
	"fmt"
	"net/url"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// key is the etcd key of one entry of a lock's queue: prefix/NAME/LEASE.N. Its
// value is the entry's holder.
type key string

// keyOf returns the N-th key of a queue on a lease.
func keyOf(queue string, lease clientv3.LeaseID, n int) key {
	return key(fmt.Sprintf("%s%x.%d", queue, int64(lease), n))
}

// queueOf returns what all keys of the lock begin with. NAME is escaped, so it
// has no slash, and no other lock's keys begin like that.
func queueOf(prefix, name string) string {
	return prefix + "/" + url.PathEscape(name) + "/"
}

func (k key) queue() string { return string(k[:strings.LastIndexByte(string(k), '/')+1]) }
func (k key) path() string  { return strings.TrimSuffix(k.queue(), "/") }
func (k key) isZero() bool  { return k == "" }
