// Package rivals compares the Lockers of this project with other lock libraries
// on the same servers.
//
//	acquire-*   one client takes and gives back a lock that nobody else wants
//	handover-*  eight clients take one lock in turn and hold it for 20 µs;
//	            counted is how often it passes from one to another
//
// redis is one server that keeps nothing on disk, redlock five that sync every
// write, as Redlock wants them. etcd and ZooKeeper are one server each that
// syncs every write, which is their default. Every client has a connection of
// its own. Ratios are medians of rounds in which all contestants of a case run
// one after the other, in shuffled order.
package rivals
