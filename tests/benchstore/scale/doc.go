// Package scale measures the store as its file grows to 1,000,000 resources and
// 10,000,000 keys: at ten sizes the time to open it, the heap that it holds, and
// the latency of one writer.
//
// The load is sorted and goes through Store.Update, 1,000 resources with ten
// keys each in one transaction.
//
// # Caveats
//
// The file is in the page cache when it is opened, as far as memory goes.
package scale
