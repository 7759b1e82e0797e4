package boltfile

import (
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Open opens the bbolt file at path, creating it if there is none.
func Open(path string, o Options) (*File, error) {
	if err := o.check(path); err != nil {
		return nil, err
	}
	_, statErr := os.Stat(path)
	var file *os.File
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: o.timeout(), FreelistType: bolt.FreelistMapType,
		OpenFile: func(p string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = os.OpenFile(p, flag, mode)
			return file, err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("fencedkv: open %s: %w", path, err)
	}
	if os.IsNotExist(statErr) && o.Init != nil {
		if err := db.Update(o.Init); err != nil {
			db.Close()
			return nil, err
		}
	}
	return &File{path: path, file: file, db: db, release: func() {}}, nil
}
