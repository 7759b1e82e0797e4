// Package etcdlock tests adapters/etcdlock on real etcd servers.
package etcdlock
