//go:build !unix

package boltfile

import "os"

func sizer(f *os.File) (func() (int64, error), error) {
	return func() (int64, error) {
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}, nil
}
