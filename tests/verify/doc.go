// Package verify tests that a store with verification admits the current grant of
// a real lock service, and nothing else.
package verify
