package crash_test

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"os"
)

// settle writes the current meta page of a bbolt file again, then syncs.
func settle(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var (
		current []byte
		at      int64
		newest  uint64
	)
	for n := range int64(2) {
		page := make([]byte, os.Getpagesize())
		offset := n * int64(len(page))
		if _, err := f.ReadAt(page, offset); errors.Is(err, io.EOF) {
			break // bbolt says what is wrong
		} else if err != nil {
			return err
		}
		if txid, sound := readMeta(page); sound && txid >= newest {
			current, at, newest = page, offset, txid
		}
	}
	if current == nil {
		return errors.New("no sound meta page")
	}
	if _, err := f.WriteAt(current, at); err != nil {
		return err
	}
	return f.Sync()
}

// readMeta returns the transaction of a meta page: a header of 16 bytes, then 56
// bytes under an FNV-1a checksum, the last 8 of which are the transaction's.
func readMeta(page []byte) (txid uint64, sound bool) {
	meta := page[16:80]
	sum := fnv.New64a()
	sum.Write(meta[:56])
	return binary.NativeEndian.Uint64(meta[48:]), sum.Sum64() == binary.NativeEndian.Uint64(meta[56:])
}
