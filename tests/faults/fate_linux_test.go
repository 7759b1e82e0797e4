package faults_test

import "slices"

// fate is what must become of the victim's lease, where the moment gives it one.
type fate int

const (
	either fate = iota
	keeps       // the fault costs nobody the lock
	loses
)

// atLease reports whether the victim has a lease, at the moment, which it wants to
// keep.
func (r *run) atLease() bool { return r.moment.name == holding || r.moment.name == renewing }

func (r *run) fate() fate {
	switch name := r.fault.name; {
	case r.fault.brief:
		return keeps
	case r.fault.lost && !r.takesEntry():
		return keeps
	case r.fault.lost && r.atLease():
		return loses
	case r.atLease() && (name == clientStopped || name == serverStopped || name == droppedUp || name == droppedDown || name == droppedBoth):
		return loses
	}
	return either
}

// takesEntry reports whether the fault takes the victim's entry with it. A counter
// on Redis is a key of its own.
func (r *run) takesEntry() bool {
	return r.fault.lost && (r.fault.name != counterLost || r.service.lineage || r.service.falls)
}

// impossible are the cells that cannot be, and why.
var impossible = []struct{ adapter, moment, fault, why string }{
	{redisName, "", leaseRevoked, "a lock on Redis hangs on no lease or session"},
	{redlockName, "", leaseRevoked, "a lock on Redis hangs on no lease or session"},
	{"", holding, replyLost, "between renewals no request is under way; see renewing"},
	{"", holding, delayed, "between renewals no request is under way; see renewing"},
}

// whyNot returns why a cell cannot be, or nothing.
func whyNot(adapter, moment, fault string) string {
	for _, n := range impossible {
		if (n.adapter == "" || n.adapter == adapter) && (n.moment == "" || n.moment == moment) && n.fault == fault {
			return n.why
		}
	}
	return ""
}

// reasons are those of impossible, each once.
func reasons() (all []string) {
	for _, n := range impossible {
		if !slices.Contains(all, n.why) {
			all = append(all, n.why)
		}
	}
	return all
}
