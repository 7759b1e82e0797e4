package engine

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"
)

const (
	headerBucket = "fencedkv"
	marksBucket  = "marks"
	dataBucket   = "data"
)

var headerKey = []byte("header")

// Snapshot reads a durable state of the file, or what a write transaction has
// made of it. All methods may be called concurrently,
// and after its end they return ErrTxDone: memory that bbolt has given back is
// never touched. What they return is a copy.
type Snapshot struct {
	file *boltfile.File
	path string
	id   int // of the transaction

	mu    sync.Mutex
	state *boltfile.State // what is read; nil for a write transaction, and at the end
	tx    *bbolt.Tx       // the write transaction; nil if there is none, and at the end
	root  boltfile.Tree   // of a write transaction: the root bucket as the last commit left it

	rootCheck           *boltfile.PageCheck // of root; nil until something is written
	counts              *Header             // what the header is going to say; nil until something is written
	found               buckets
	header, marks, data bucket
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
	if s.tx == nil && s.state == nil {
		return ErrTxDone
	}
	return boltfile.Guard(s.path, func() error {
		err := s.find(want)
		if err == nil {
			err = fn()
		}
		if over := s.intact(); over != nil {
			return over // whatever was read
		}
		return err
	})
}

// intact returns nil if what was read is of this snapshot, and not of another file
// that was written over this one.
func (s *Snapshot) intact() error {
	if s.state != nil {
		return s.state.Intact()
	}
	return s.file.Intact(&s.root, s.id-1)
}

// openAll finds all buckets.
func (s *Snapshot) openAll() error { return s.do(inAll, func() error { return nil }) }

// find finds the buckets in want, once: to find one costs as much as to read a
// record of it.
func (s *Snapshot) find(want buckets) error {
	if want&^s.found == 0 {
		return nil
	}
	var missing []string
	for _, b := range [...]struct {
		in   buckets
		name string
		at   *bucket
	}{{inHeader, headerBucket, &s.header}, {inMarks, marksBucket, &s.marks}, {inData, dataBucket, &s.data}} {
		if want&^s.found&b.in == 0 {
			continue
		}
		tree, there, err := s.lookUp(b.name)
		switch {
		case err != nil:
			return err
		case !there:
			missing = append(missing, strconv.Quote(b.name))
			continue
		}
		*b.at = bucket{name: b.name, tree: tree}
		s.found |= b.in
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(missing) > 1 && want == inAll && s.found&inHeader == 0:
		// One of the other two may be a bucket of somebody else.
		return &boltfile.FormatError{Path: s.path, Detail: "it is a bbolt file, but no store of fencedkv"}
	}
	return &Damage{Path: s.path, Kind: "header", Problem: "bucket " + strings.Join(missing, " and ") + " is missing"}
}

// writing returns a bucket that was found, to be written to.
func (s *Snapshot) writing(b *bucket) (*bucket, error) {
	if b.written == nil {
		if s.rootCheck == nil {
			s.rootCheck = boltfile.NewPageCheck(s.root)
		}
		if err := b.write(s.tx, s.rootCheck); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (s *Snapshot) lookUp(name string) (boltfile.Tree, bool, error) {
	if s.state != nil {
		return s.state.Bucket(name)
	}
	return s.root.Bucket([]byte(name))
}

// end closes the transaction and drops what it has written. It may be called
// again, and after commit.
func (s *Snapshot) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, state := s.tx, s.state
	s.tx, s.state = nil, nil
	switch {
	case tx != nil:
		return s.file.Rollback(tx)
	case state != nil:
		return state.Release()
	}
	return nil
}

// commit makes durable what was written. It ends the transaction.
func (s *Snapshot) commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := s.tx
	s.tx = nil
	// A commit may map the file anew, and what was there before is not to be kept.
	s.root, s.rootCheck, s.found = boltfile.Tree{}, nil, 0
	s.header, s.marks, s.data = bucket{}, bucket{}, bucket{}
	return s.file.Commit(tx)
}

func (s *Snapshot) readHeader() (Header, error) {
	record, err := s.header.Get(headerKey)
	if err != nil {
		return Header{}, err
	}
	h, err := DecodeHeader(record)
	switch {
	case errors.Is(err, errFormat):
		err = &boltfile.FormatError{Path: s.path, Detail: err.Error()}
	case err != nil:
		err = &Damage{Path: s.path, Kind: "header", Problem: err.Error()}
	}
	return h, err
}
