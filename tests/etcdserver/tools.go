// Package etcdserver requires the etcd server that the tests run against. It
// is a module of its own so that nothing else inherits its dependencies; the
// tests build it with
//
//	go build go.etcd.io/etcd/server/v3
package etcdserver
