package etcdlock

import (
	"net/url"
	"strings"
)

// key is the etcd key of one entry of a lock's queue: prefix/NAME/HOLDER.
type key string

// queueOf returns what all keys of the lock begin with. NAME is escaped, so it
// has no slash, and no other lock's keys begin like that.
func queueOf(prefix, name string) string {
	return prefix + "/" + url.PathEscape(name) + "/"
}

func (k key) queue() string  { return string(k[:strings.LastIndexByte(string(k), '/')+1]) }
func (k key) path() string   { return strings.TrimSuffix(k.queue(), "/") }
func (k key) holder() string { return string(k[len(k.queue()):]) }
func (k key) isZero() bool   { return k == "" }
