// Package locktest is the kit that every locks.Locker must pass. Run takes a
// factory and has one subtest per duty of the contract.
package locktest
