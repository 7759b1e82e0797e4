// Package loopback is plain JSON over HTTP on 127.0.0.1, with a random bearer
// secret, so that no other user of the machine can write to the account.
package loopback
