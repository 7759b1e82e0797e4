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
	id   int // of the transaction

	mu                  sync.Mutex
	tx                  *bbolt.Tx     // nil when it has ended
	header, marks, data *bbolt.Bucket // nil until find has found them
}

// buckets is a set of the file's buckets.
type buckets uint8

const (
	inHeader buckets = 1 << iota
	inMarks
	inData

	inAll = inHeader | inMarks | inData
)

// do runs fn, which uses the buckets in want, while the transaction is open.
func (s *Snapshot) do(want buckets, fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return ErrTxDone
	}
	return boltfile.Guard(s.path, func() error {
		if err := s.find(want); err != nil {
			return err
		}
		return fn()
	})
}

// openAll finds all buckets.
func (s *Snapshot) openAll() error { return s.do(inAll, func() error { return nil }) }

// find finds the buckets in want, once: to find one costs as much as to read a
// record of it.
func (s *Snapshot) find(want buckets) error {
	var missing []string
	for _, b := range [...]struct {
		in   buckets
		name []byte
		at   **bbolt.Bucket
	}{{inHeader, headerBucket, &s.header}, {inMarks, marksBucket, &s.marks}, {inData, dataBucket, &s.data}} {
		if want&b.in == 0 || *b.at != nil {
			continue
		}
		if *b.at = s.tx.Bucket(b.name); *b.at == nil {
			missing = append(missing, strconv.Quote(string(b.name)))
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(missing) > 1 && want == inAll && s.header == nil:
		// One of the other two may be a bucket of somebody else.
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
