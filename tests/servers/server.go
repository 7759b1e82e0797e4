package servers

import "testing"

// Server is one real server process and its data, owned by one test.
//
// The methods fail the test, with the end of the server's log, when the server
// does not do what they say. Like all that may call t.FailNow they are for the
// test's own goroutine; Addr and PID may be called from any.
type Server interface {
	// Addr is host:port for clients. It never changes.
	Addr() string
	// PID is the process that runs now, 0 when none does.
	PID() int
	// Kill ends the process by SIGKILL, also when it is paused, and returns
	// when it is gone. Clients' connections are reset by the kernel.
	Kill(t testing.TB)
	// Stop ends the process in order (SIGTERM) and returns when it is gone.
	Stop(t testing.TB)
	// Start runs the ended server again, with the same address and data, and
	// returns when it is ready.
	Start(t testing.TB)
	// StartEmpty is Start on no data: what the server knew is lost. A running
	// server is killed first.
	StartEmpty(t testing.TB)
	// Restart is Kill and Start.
	Restart(t testing.TB)
	// Pause stops the process where it stands (SIGSTOP) and returns when it
	// has stopped. Its connections stay open and nobody answers.
	Pause(t testing.TB)
	// Resume lets a paused process go on (SIGCONT).
	Resume(t testing.TB)
}

var (
	_ Server = (*Redis)(nil)
	_ Server = (*ZooKeeper)(nil)
	_ Server = (*Etcd)(nil)
)
