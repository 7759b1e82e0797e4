package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// MaxPending is the most that one Tx may take: for each write its key, the name of
// its resource, its value and about 64 bytes, and for each claim the mark that it
// may raise. It is more than the records take in the file, without the pages around
// them. A commit takes about three times as much memory.
const MaxPending = 256 << 20

// Claim is a token offered to a resource.
type Claim struct {
	Resource string
	Token    fence.Token
	Verified bool // the lock service has confirmed Token; see Options.Verify
}

// Tx is claims and the writes that are to be applied under them, all or none.
// All methods may be called concurrently.
type Tx struct {
	claims []Claim // in order of resources, no two alike
	marks  int     // size of the marks that they may raise

	mu      sync.Mutex
	snap    *Snapshot  // set while the function of Do runs
	over    bool       // the function of Do has returned
	pending []overlay  // of each claim; nil until the first write
	size    int        // of pending and of the marks
	alone   [1]overlay // pending of the only claim
}

// NewTx returns a Tx with no writes. The claims are in order of their resources
// and no two are for the same one.
func NewTx(claims ...Claim) *Tx {
	t := &Tx{claims: claims}
	for _, c := range claims {
		t.marks += markSize(c)
	}
	t.size = t.marks
	return t
}

// markSize is the most that a mark takes, as pending writes are counted.
func markSize(c Claim) int {
	const digits, marks, encoded = 20, 2, 3 // of fence.Token.String
	return pendingCost + len(c.Resource) + recordHead + timeSize +
		digits + marks + encoded*(len(c.Token.Lineage)+len(c.Token.Holder))
}

// Claims returns the claims of t, which the caller does not change.
func (t *Tx) Claims() []Claim { return t.claims }

// Verified notes that the lock service has confirmed the token of claim i. It
// comes before Do, or after one that ended with an *UnansweredError.
func (t *Tx) Verified(i int) { t.claims[i].Verified = true }

// Fits returns an error over ErrTooLarge if no Do takes t.
func (t *Tx) Fits() error {
	if t.size > MaxPending {
		return &SizeError{What: "transaction", Size: t.size, Limit: MaxPending}
	}
	return nil
}

// attach lets the function of Do read.
func (t *Tx) attach(s *Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snap = s
}

// detach ends the use of t by the function of Do.
func (t *Tx) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snap, t.over = nil, true
}

// Claimed returns the token that t claims resource with.
func (t *Tx) Claimed(resource string) (fence.Token, error) {
	i, err := t.claim(resource)
	if err != nil {
		return fence.Token{}, err
	}
	return t.claims[i].Token, nil
}

// claim returns the index of the claim of resource.
func (t *Tx) claim(resource string) (int, error) {
	i, found := slices.BinarySearchFunc(t.claims, resource, func(c Claim, r string) int { return strings.Compare(c.Resource, r) })
	if !found {
		return 0, fmt.Errorf("%w: %q", ErrNotClaimed, resource)
	}
	return i, nil
}

// written returns what t has written to a resource, nil if that is nothing. The
// caller holds t.mu.
func (t *Tx) written(resource string) *overlay {
	i, err := t.claim(resource)
	if err != nil || t.pending == nil {
		return nil
	}
	return &t.pending[i]
}

// Put writes a copy of value. It errors after the function of Do has returned,
// and over ErrTooLarge beyond MaxPending.
func (t *Tx) Put(resource string, key, value []byte) error {
	return t.write(resource, key, EncodeValue(resource, key, value))
}

// Delete is like Put.
func (t *Tx) Delete(resource string, key []byte) error {
	return t.write(resource, key, nil)
}

func (t *Tx) write(resource string, key, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return ErrTxDone
	}
	i, err := t.claim(resource)
	if err != nil {
		return err
	}
	if size := t.size + pendingCost + len(resource) + len(key) + len(record); size > MaxPending {
		return &SizeError{What: "transaction", Size: size, Limit: MaxPending}
	}
	if t.pending == nil {
		if t.pending = t.alone[:]; len(t.claims) > 1 {
			t.pending = make([]overlay, len(t.claims))
		}
	}
	grown, added := t.pending[i].set(string(key), record)
	if t.size += grown; added {
		t.size += len(resource)
	}
	return nil
}

// Get returns a copy of a value as t leaves it, or ErrNotFound.
func (t *Tx) Get(resource string, key []byte) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.snap == nil {
		return nil, ErrTxDone
	}
	p, found := t.written(resource).get(string(key))
	switch {
	case !found:
		return t.snap.Get(resource, key)
	case p.record == nil:
		return nil, ErrNotFound
	}
	return append([]byte{}, p.record[recordHead:]...), nil
}
