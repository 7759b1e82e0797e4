package engine

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

var (
	headerBucket = []byte("fencedkv")
	headerKey    = []byte("header")
	marksBucket  = []byte("marks")
	dataBucket   = []byte("data")
)

// Snapshot reads one bbolt transaction. All methods may be called concurrently,
// and after its end they return ErrTxDone: memory that bbolt has given back is
// never touched. What they return is a copy.
type Snapshot struct {
	file *boltfile.File
	path string

	mu                  sync.Mutex
	tx                  *bbolt.Tx // nil when it has ended
	header, marks, data *bbolt.Bucket
}

// do runs fn while the transaction is open.
func (s *Snapshot) do(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return ErrTxDone
	}
	return boltfile.Guard(s.path, fn)
}

// open finds the buckets.
func (s *Snapshot) open() error {
	var missing []string
	find := func(name []byte) *bbolt.Bucket {
		b := s.tx.Bucket(name)
		if b == nil {
			missing = append(missing, strconv.Quote(string(name)))
		}
		return b
	}
	s.header, s.marks, s.data = find(headerBucket), find(marksBucket), find(dataBucket)
	switch len(missing) {
	case 0:
		return nil
	case 3:
		return &boltfile.FormatError{Path: s.path, Detail: "it is a bbolt file, but no store of fencedkv"}
	}
	return &Damage{Path: s.path, Kind: "header", Problem: "bucket " + strings.Join(missing, " and ") + " is missing"}
}

// end closes the transaction and drops what it has written. It may be called
// again, and after commit.
func (s *Snapshot) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.tx
	if tx == nil {
		return nil
	}
	s.tx = nil
	return s.file.Rollback(tx)
}

// commit makes durable what was written. It ends the transaction.
func (s *Snapshot) commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.tx
	s.tx = nil
	return s.file.Commit(tx)
}

func (s *Snapshot) readHeader() (Header, error) {
	h, err := DecodeHeader(s.header.Get(headerKey))
	switch {
	case errors.Is(err, errFormat):
		err = &boltfile.FormatError{Path: s.path, Detail: err.Error()}
	case err != nil:
		err = &Damage{Path: s.path, Kind: "header", Problem: err.Error()}
	}
	return h, err
}
