// Package fencedkv is an embedded key-value store that refuses stale writers.
package fencedkv
