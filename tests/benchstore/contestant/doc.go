// Package contestant puts the stores that are measured behind one interface. A
// Put of each has reached the device when it returns, and a Get of each returns
// a copy that its caller may keep.
//
// # Caveats
//
// The rivals check no token: they are measured for what durability alone costs.
// Each is opened as its own documentation advises for durable writes and left
// at its defaults elsewhere.
package contestant
