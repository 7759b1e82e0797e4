package fencedkv

import "go.etcd.io/bbolt"

// OpenCommit is Open with a function in the place of bbolt's Tx.Commit.
func OpenCommit(path string, o *Options, commit func(*bbolt.Tx) error) (*Store, error) {
	return open(path, o, commit)
}
