package damage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// TestWhatIsNoStoreIsRefusedAndLeftAlone opens what people leave where a store
// should be. Open says what it is, and writes nothing to it.
func TestWhatIsNoStoreIsRefusedAndLeftAlone(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := make([]byte, 3*pageSize)
	rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(random)
	few := theCorpus(t, "few")
	for name, content := range map[string][]byte{
		"an empty file":               {},
		"zeros":                       make([]byte, 3*pageSize),
		"zeros, less than a page":     make([]byte, 100),
		"random bytes":                random,
		"text":                        []byte(strings.Repeat("accounts:\n  - name: one\n", 1000)),
		"a line":                      []byte("hello\n"),
		"the first page of a store":   few.sound[:pageSize],
		"both meta pages of a store":  few.sound[:2*pageSize],
		"a store without its head":    few.sound[2*pageSize:],
		"a store behind another page": append(make([]byte, pageSize), few.sound...),
		"a bbolt file":                bboltFile(t, "mine"),
		"a bbolt file with a bucket of a store's name": bboltFile(t, "marks"),
		"a store of a newer version":                   newerStore(t, few.sound),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			must(t, os.WriteFile(path, content, 0o600))
			_, err := fencedkv.Open(path, nil)
			if !errors.Is(err, fencedkv.ErrFormat) && !errors.Is(err, fencedkv.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open: %v, want ErrFormat or ErrCorrupt, and the path", err)
			}
			now, readErr := os.ReadFile(path)
			must(t, readErr)
			// Open writes the meta page that it finds again, with the same bytes.
			if !bytes.Equal(now, content) {
				t.Error("Open has written to it")
			}
			t.Log(err)
		})
	}
	t.Run("a directory", func(t *testing.T) {
		path := t.TempDir()
		if _, err := fencedkv.Open(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Open: %v, want an error that names it", err)
		}
		left, err := os.ReadDir(path)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("Open has left %v in it", left)
		}
	})
}

// bboltFile is a file of another program.
func bboltFile(t *testing.T, bucket string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bolt.db")
	withBbolt(t, path, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte(bucket))
		return err
	})
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

// newerStore is a store whose header says that it is of version 2. Only the first
// 16 bytes of a header have one meaning in every version.
func newerStore(t *testing.T, store []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "newer.db")
	must(t, os.WriteFile(path, store, 0o600))
	withBbolt(t, path, func(tx *bbolt.Tx) error {
		header := append([]byte("fencedkv\x00\x00\x00\x00\x00\x00\x00\x02"), "what comes is not known"...)
		table := crc32.MakeTable(crc32.Castagnoli)
		binary.BigEndian.PutUint32(header[8:], crc32.Update(crc32.Checksum(header[:8], table), table, header[12:]))
		return tx.Bucket([]byte("fencedkv")).Put([]byte("header"), header)
	})
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

func withBbolt(t *testing.T, path string, fn func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	must(t, err)
	must(t, db.Update(fn))
	must(t, db.Close())
}
