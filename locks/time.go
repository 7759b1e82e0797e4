package locks

import "time"

// Validity returns how much of a lease time of ttl a holder may trust: ttl less
// 1 % for clocks that run at different speed and 2 ms for the time that it
// takes to signal the end. It is not positive for a ttl below about 2 ms, which
// an adapter must refuse.
func Validity(ttl time.Duration) time.Duration {
	return ttl - ttl/100 - 2*time.Millisecond
}

// Elapsed returns the time since a time that time.Now returned: the larger of
// what the monotonic and the wall clock say, because the monotonic clock of some
// systems stands still while the machine sleeps. All lease times are counted
// with it.
func Elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
