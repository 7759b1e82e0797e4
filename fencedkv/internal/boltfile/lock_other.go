//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package boltfile

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func unlock(*os.File) {}
