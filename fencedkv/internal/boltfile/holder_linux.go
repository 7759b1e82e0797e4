package boltfile

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockHolder finds who holds the flock of f. 0 is "not known": the holder may be
// on another machine or outside this process' namespace.
func lockHolder(f *os.File) (pid int, name string) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, ""
	}
	dev := fmt.Sprintf("%02x:%02x", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev))) //nolint:unconvert // 32 bits on MIPS
	for s := bufio.NewScanner(bytes.NewReader(locks)); s.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 08:01:131090 0 EOF
		w := strings.Fields(s.Text())
		if len(w) < 6 || w[1] != "FLOCK" {
			continue // a waiter's line has "->" there
		}
		at := strings.LastIndexByte(w[5], ':')
		if at < 0 || w[5][at+1:] != strconv.FormatUint(st.Ino, 10) {
			continue
		}
		p, err := strconv.Atoi(w[4])
		if err != nil || p <= 0 {
			continue
		}
		// btrfs and overlayfs list another device than stat does.
		if w[5][:at] != dev && !hasOpen(p, st) {
			continue
		}
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p))
		return p, strings.TrimSpace(string(comm))
	}
	return 0, ""
}

func hasOpen(pid int, want unix.Stat_t) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	fds, _ := os.ReadDir(dir)
	for _, fd := range fds {
		var st unix.Stat_t
		if unix.Stat(dir+fd.Name(), &st) == nil && st.Dev == want.Dev && st.Ino == want.Ino {
			return true
		}
	}
	return false
}
