package faults_test

import (
	"fmt"
	"time"
)

// verdict is what a cell has shown.
type verdict struct {
	errs    []error
	certain bool          // no busy machine explains them
	margin  time.Duration // between the signal and the service
	told    bool          // there is a margin
	stall   time.Duration // for how long a process did not run, or the service not answer
}

// verify checks what was recorded.
func (r *run) verify() (v verdict) {
	v.errs = r.ledger.check(r.takesEntry() && r.fault.name == counterLost)
	v.certain = len(v.errs) > 0
	if r.grant == nil {
		return v
	}
	fail := func(format string, args ...any) { v.errs = append(v.errs, fmt.Errorf(format, args...)) }
	woke, wokeUp := r.victim.seen(evWoke)
	if wokeUp && !woke.Ended {
		fail("the victim woke after longer than its lease, and its first look at it found it good")
		v.certain = true
	}
	ended, over := r.victim.seen(evEnded)
	if !over || !ended.Lost {
		return v
	}
	v.stall = ended.Stall
	freed := r.freed()
	if r.takesEntry() {
		v.stall = max(v.stall, r.outage)
		if ended.At.After(ended.Deadline) {
			fail("the victim learned by the clock alone, at %s, that its entry had been taken away", ended.At.Format("05.000"))
		}
		if ended.Deadline.After(r.hit.Add(ttl)) {
			fail("the victim renewed its lease until %s, after its entry had been taken away at %s",
				ended.Deadline.Format("05.000"), r.hit.Format("05.000"))
		}
		return v
	}
	if freed.IsZero() {
		fail("nobody saw the victim's grant gone")
		return v
	}
	if look, late := r.ledger.lateLook(r.grant.Holder, freed); late {
		fail("the victim found its lease good at %s, and the service had no such grant at %s",
			look.looked.Format("05.000"), freed.Format("05.000"))
		v.certain = true
	}
	if r.fault.name == clientStopped {
		v.stall = 0
		if r.atLease() && !wokeUp {
			fail("the victim was not stopped for longer than its lease")
			v.stall = ttl // it had ended before, and nothing was shown: again
		}
		return v
	}
	v.margin, v.told = freed.Round(0).Sub(ended.At), true
	if v.margin < 0 {
		fail("the victim was told %v after the service could grant the lock again", -v.margin)
	}
	return v
}

// freed is the first moment at which the service is known to have the victim's grant
// no longer.
func (r *run) freed() time.Time {
	freed := r.observer.goneAt()
	lease, at, err := r.next.granted()
	if err == nil && lease.Token().Seq > r.grant.Seq && (freed.IsZero() || at.Before(freed)) {
		freed = at // it came after the victim, not before
	}
	return freed
}

// excused reports whether the machine explains what went wrong.
func (v verdict) excused() bool {
	return !v.certain && (v.stall > ttl/10 || v.told && v.margin < 0 && v.stall > -v.margin)
}
