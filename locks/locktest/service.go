package locktest

import (
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/locks"
)

// Service is a lock service as the kit sees it: a way to make Lockers on it,
// and what can be done to it. A nil ability is reported by name in the subtests
// that need it, which are then skipped; New and TTL are required.
//
// The factory that makes a Service is called once per subtest, and each Service
// must have a namespace of its own (a prefix, a root, a server), because
// subtests run at the same time. A subtest that stops or pauses the whole
// service needs a server of its own: see NeedsOwnServer.
type Service struct {
	// New returns a Locker with a connection of its own, as another machine
	// would have. The kit closes it.
	New func(t testing.TB, c Config) locks.Locker

	// TTL is the lease time that New uses unless Config says otherwise. The
	// shorter it is the faster the kit; two seconds are good for a real server,
	// less makes a busy machine lose leases that it should renew.
	TTL time.Duration

	// MaxTTL is the longest lease time that Config may ask for, 0 for no limit.
	// Subtests that must tell a removed entry from one that ran out ask for
	// half a minute, or for MaxTTL if that is shorter; below 5 s they get
	// less sure on a busy machine.
	MaxTTL time.Duration

	// Patience is how long the kit waits for what must happen before it calls
	// the duty broken, by default 10 times TTL and 20 s. It is no bound on speed.
	Patience time.Duration

	// Entries counts what the service stores for the lock name: the holder's
	// entry and those of waiters, but no counter. Duties 2 to 7.
	Entries func(t testing.TB, name string) int

	// DeleteEntry deletes the holder's entry of the lock by hand, as an operator
	// would. Duties 6 and 7.
	DeleteEntry func(t testing.TB, name string)

	// ReplaceEntry makes the lock look held by somebody else, in the place of
	// the present holder. Duties 5 and 6: release and renewal must compare.
	ReplaceEntry func(t testing.TB, name string)

	// DeleteWaiters deletes the entries of all waiters by hand. Duty 4. Nil
	// also where waiters have no entry.
	DeleteWaiters func(t testing.TB, name string)

	// Revoke ends the lease or session on the service that the holder's entry
	// hangs on. Duty 6. Nil where there is none.
	Revoke func(t testing.TB, name string)

	// Restart stops the service and starts it again on its data, and returns
	// when it serves. Duty 1.
	Restart func(t testing.TB)

	// Pause makes the service silent, connections staying open, until resume is
	// called, which may be twice. Duty 3.
	Pause func(t testing.TB) (resume func())

	// Cut holds up all traffic of one Locker made by New silently, in both
	// directions and on new connections too, until heal is called. As on a real
	// network, heal may deliver late what was sent, or break the connection, but
	// never drops bytes out of the middle of a stream. heal may be called twice.
	// Duties 1, 3, 5, 6, 7 and 10.
	Cut func(t testing.TB, l locks.Locker) (heal func())

	// LoseReply lets the Locker's next lock-taking request reach the service,
	// loses its reply, and then breaks the connection, once. Duties 2 and 3.
	LoseReply func(t testing.TB, l locks.Locker)

	// Requests counts the requests that all Lockers have sent to the service.
	// Duty 9; part of duty 10 also looks at it.
	Requests func() int

	// Expire ends the holder's lease time now, as if it had passed without a
	// renewal. Nil means that the kit cuts the holder off and waits instead.
	// Duties 1 and 5.
	Expire func(t testing.TB, name string)

	// BadOptions makes Lockers whose options the service cannot keep (a TTL
	// that it would round to nothing, an empty address). Each must return an
	// error over locks.ErrBadOption. Duty 10.
	BadOptions map[string]func() (locks.Locker, error)

	// Secret makes a Locker to an address that nobody serves, with this
	// password in it, and returns the error of making it or of its first
	// TryAcquire. Duty 10.
	Secret func(t testing.TB, password string) error
}

// Config is what a subtest asks of a Locker beyond the defaults. Zero fields
// are defaults.
type Config struct {
	TTL     time.Duration
	MaxHold time.Duration
}

// Factory makes the Service for one subtest. The kit calls it from several
// goroutines at once. See NeedsOwnServer.
type Factory func(t *testing.T) *Service
