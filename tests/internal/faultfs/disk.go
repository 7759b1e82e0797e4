package faultfs

// Disk is what a device holds: an image that is durable, and the changes since,
// any of which may be.
type Disk struct {
	Durable Image
	Pending []Change
}

// Add takes the next change; a sync makes those of its file durable. A sync that
// failed does so with those parts that keep admits, and no later sync with the
// others.
func (d *Disk) Add(c Change, keep func() bool) {
	var covers func(Change) bool
	switch c.Kind {
	case Opened:
		d.Durable.bind(c.Name, c.File)
		return
	case Synced, SyncFailed:
		if c.Kind == Synced {
			keep = func() bool { return true }
		}
		covers = func(p Change) bool { return p.File == c.File && (p.Kind == Wrote || p.Kind == Truncated) }
	case DirSynced:
		keep = func() bool { return true }
		covers = func(p Change) bool { return p.Kind != Wrote && p.Kind != Truncated }
	default:
		d.Pending = append(d.Pending, c)
		return
	}
	var left []Change
	for _, p := range d.Pending {
		if !covers(p) {
			left = append(left, p)
		} else if p.Kind == Wrote || keep() {
			d.Durable.Apply(p, keep)
		}
	}
	d.Pending = left
}
