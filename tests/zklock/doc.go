// Package zklock tests adapters/zklock on real ZooKeeper servers.
package zklock
