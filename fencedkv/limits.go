package fencedkv

import "github.com/fencedkv/fencedkv/fencedkv/internal/engine"

// Limits, in bytes. Names and keys are not empty and may hold any bytes; a value
// may be empty. All but MaxTransaction are fixed in the file format.
const (
	MaxResource = 512      // the name of a resource
	MaxKey      = 16 << 10 // a key
	MaxValue    = 64 << 20 // a value

	// MaxTransaction is the most that one Update may take: for each pending write
	// its key, the name of its resource, its value and 64 bytes, and for each claim
	// the name of its resource, its token and 100 bytes, where a byte of lineage
	// or holder counts three.
	MaxTransaction = engine.MaxPending
)

func checkSize(what string, size, limit int) error {
	switch {
	case size == 0:
		return &ArgumentError{Argument: what, Problem: "is empty"}
	case size > limit:
		return &LimitError{What: what, Size: size, Limit: limit}
	}
	return nil
}

func checkResource(name string) error { return checkSize("resource name", len(name), MaxResource) }

func checkKey(key []byte) error { return checkSize("key", len(key), MaxKey) }

func checkPair(key, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if len(value) > MaxValue {
		return &LimitError{What: "value", Size: len(value), Limit: MaxValue}
	}
	return nil
}
