package boltfile

import (
	"os"

	"golang.org/x/sys/windows"
)

// publishOpen: an open file cannot be moved on Windows.
const publishOpen = false

func noLinks(error) bool { return false }

// link gives the file its final name by a move that replaces nothing and that
// is durable when it returns.
func link(from, to string) error { return renameNoReplace(from, to) }

func renameNoReplace(from, to string) error {
	f, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	t, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(f, t, windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "move", Old: from, New: to, Err: err}
	}
	return nil
}

func syncDir(string) error { return nil }

// removeLeftover relies on Windows, which does not remove a file that is open.
func removeLeftover(name string) bool { return os.Remove(name) == nil }
