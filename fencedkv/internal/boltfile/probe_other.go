//go:build !unix

package boltfile

import "os"

// prober asks for the size alone: Windows does not move an open file.
func prober(f *os.File, _ string) (func() (size int64, there bool, err error), error) {
	return func() (int64, bool, error) {
		info, err := f.Stat()
		if err != nil {
			return 0, false, err
		}
		return info.Size(), true, nil
	}, nil
}
