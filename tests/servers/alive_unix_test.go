//go:build unix

package servers_test

import "syscall"

// alive tells whether there is such a process, an unreaped one included.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
