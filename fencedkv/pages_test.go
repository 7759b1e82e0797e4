package fencedkv_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
)

// A page of bbolt: id (8 bytes), flags (2), count (2), overflow (4), then its
// elements of 16 bytes, then keys and values. An element of a leaf is flags (4),
// position of the key counted from the element (4), size of key (4) and value
// (4); of a branch it is position (4), size (4) and page (8). All in the
// machine's byte order.
const (
	branchFlag = 0x01
	leafFlag   = 0x02
	pageHead   = 16
	element    = 16
)

var native = binary.NativeEndian

// elements returns where in the file the elements lie of the pages in use with a
// flag.
func elements(file []byte, flag uint16) (at [][]int) {
	size := os.Getpagesize()
	free := freePages(file)
	for page := 2 * size; page < len(file); page += size {
		id := uint64(page / size)
		if native.Uint16(file[page+8:]) != flag || native.Uint64(file[page:]) != id || free[id] {
			continue
		}
		var all []int
		for i := range int(native.Uint16(file[page+10:])) {
			all = append(all, page+pageHead+i*element)
		}
		at = append(at, all)
	}
	return at
}

// freePages reads the free list of the meta page with the higher transaction.
func freePages(file []byte) map[uint64]bool {
	const freelist, transaction = pageHead + 32, pageHead + 48
	size := os.Getpagesize()
	meta := file[:size]
	if other := file[size : 2*size]; native.Uint64(other[transaction:]) > native.Uint64(meta[transaction:]) {
		meta = other
	}
	list := file[int(native.Uint64(meta[freelist:]))*size:]
	free := make(map[uint64]bool)
	for i := range int(native.Uint16(list[10:])) {
		free[native.Uint64(list[pageHead+8*i:])] = true
	}
	return free
}

// leafKey returns the key of the element of a leaf at an offset.
func leafKey(file []byte, at int) []byte {
	key := at + int(native.Uint32(file[at+4:]))
	return file[key : key+int(native.Uint32(file[at+8:]))]
}

// openDamaged opens a store of many resources and lets fn change its file: what
// was damaged before, Open finds.
func openDamaged(t *testing.T, fn func(file []byte)) *fencedkv.Store {
	t.Helper()
	path := filled(t, 2200)
	file, err := os.ReadFile(path)
	must(t, err)
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	fn(file)
	overwrite(t, path, file)
	return s
}

// overwrite writes a file in place, as it is.
func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(content, 0)
	must(t, err)
}

// A flipped bit in the place that an element names can show a sound record of
// the same size where another one was.
func TestMarkUnderASoundRecordIsNotBelievedMissing(t *testing.T) {
	for _, shown := range []int{1091, 1095, 1099, 1103, 1107, 1111} {
		const hidden = 1101
		s := openDamaged(t, func(file []byte) {
			for _, page := range elements(file, leafFlag) {
				var from, to int
				for _, at := range page {
					switch string(leafKey(file, at)) {
					case rname(hidden):
						to = at
					case rname(shown):
						from = at
					}
				}
				if from != 0 && to != 0 {
					place := from + int(native.Uint32(file[from+4:]))
					native.PutUint32(file[to+4:], uint32(place-to))
					return
				}
			}
			t.Fatalf("no page holds both %s and %s", rname(hidden), rname(shown))
		})
		r := s.Resource(rname(hidden))
		if m, err := r.Highest(t.Context()); !errors.Is(err, fencedkv.ErrCorrupt) {
			t.Errorf("%d shown in the place of %d: Highest = %v, %v, want ErrCorrupt", shown, hidden, m, err)
		}
		wantIs(t, r.Raise(t.Context(), token(1, "stale")), fencedkv.ErrCorrupt)
		wantIs(t, s.Check(t.Context()), fencedkv.ErrCorrupt)
		var list error
		for _, err := range s.Resources(t.Context()) {
			list = err
		}
		wantIs(t, list, fencedkv.ErrCorrupt)
	}
}

// A count that is lower by a flipped bit hides the last records of a page.
func TestRecordBeyondAWrongCountIsNotBelievedMissing(t *testing.T) {
	for _, of := range []string{"mark", "value"} {
		var hidden string
		s := openDamaged(t, func(file []byte) {
			for _, page := range elements(file, leafFlag) {
				key := leafKey(file, page[len(page)-1])
				value := bytes.HasPrefix(key, []byte{0, 5})
				if len(page)%2 == 0 || value != (of == "value") {
					continue // one bit less is one record less of an odd number
				}
				hidden = strings.TrimSuffix(string(bytes.TrimPrefix(key, []byte{0, 5})), "key")
				file[page[0]-pageHead+10] ^= 1
				return
			}
			t.Fatalf("no %s is the last of an odd number", of)
		})
		r := s.Resource(hidden)
		if of == "mark" {
			_, err := r.Highest(t.Context())
			wantIs(t, err, fencedkv.ErrCorrupt)
			wantIs(t, r.Raise(t.Context(), token(1, "stale")), fencedkv.ErrCorrupt)
			continue
		}
		_, err := r.Get(t.Context(), b("key"))
		wantIs(t, err, fencedkv.ErrCorrupt)
	}
}

// bbolt finds the place of a leaf in the branch above by the first key of the
// leaf. Under another key it would leave the old leaf there, beside the new one.
func TestWriteUnderADamagedKeyOfABranchIsRefused(t *testing.T) {
	var under string
	s := openDamaged(t, func(file []byte) {
		for _, page := range elements(file, branchFlag) {
			for _, at := range page[1:] {
				key := at + int(native.Uint32(file[at:]))
				k := file[key : key+int(native.Uint32(file[at+4:]))]
				if bytes.HasPrefix(k, []byte("r")) && k[len(k)-1] == '1' {
					under = string(k)
					k[len(k)-1] = '0' // still above all of the leaf before, or its last
					return
				}
			}
		}
		t.Fatal("no branch page has a mark that ends with 1")
	})
	r := s.Resource(under)
	wantIs(t, r.Raise(t.Context(), token(5000, "h")), fencedkv.ErrCorrupt)
	wantIs(t, s.Check(t.Context()), fencedkv.ErrCorrupt)
}

// A damaged key in a branch page sends a search to the wrong leaf, whose records
// are sound.
func TestSearchInTheWrongLeafIsNotBelieved(t *testing.T) {
	changes := map[string]func(key []byte){
		"up":   func(key []byte) { key[len(key)-1] += 8 },
		"down": func(key []byte) { key[len(key)-2]-- },
	}
	for name, change := range changes {
		s := openDamaged(t, func(file []byte) {
			changed := 0
			for _, page := range elements(file, branchFlag) {
				for _, at := range page[1:] {
					key := at + int(native.Uint32(file[at:]))
					k := file[key : key+int(native.Uint32(file[at+4:]))]
					k = bytes.TrimSuffix(bytes.TrimPrefix(k, []byte{0, 5}), []byte("key"))
					if bytes.HasPrefix(k, []byte("r")) && k[len(k)-2] > '0' {
						change(k)
						changed++
					}
				}
			}
			if changed == 0 {
				t.Fatal("no branch page was found")
			}
		})
		found, foundByScan := 0, 0
		for i := range 2200 {
			keys := 0
			err := s.Resource(rname(i)).View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
				for _, err := range tx.Scan(fencedkv.Range{Reverse: i%4 == 0}) {
					if err != nil {
						return err
					}
					keys++
				}
				return nil
			})
			switch {
			case errors.Is(err, fencedkv.ErrCorrupt):
				foundByScan++
			case err != nil || keys != 1-i%2:
				t.Errorf("%s: Scan of %s has %d keys, %v, want %d or ErrCorrupt", name, rname(i), keys, err, 1-i%2)
			}
			m, err := s.Resource(rname(i)).Highest(t.Context())
			switch {
			case errors.Is(err, fencedkv.ErrCorrupt):
				found++
			case err != nil || m.Token != token(uint64(i+1), "h"):
				t.Errorf("%s: Highest(%s) = %v, %v, want the mark or ErrCorrupt", name, rname(i), m, err)
			}
		}
		if found == 0 || foundByScan == 0 {
			t.Errorf("%s: every search was right, the damage does nothing", name)
		}
		listed, err := 0, error(nil)
		for info, failed := range s.Resources(t.Context()) {
			if err = failed; err == nil && info.Name != rname(listed) {
				t.Errorf("%s: %s is listed after %d resources", name, info.Name, listed)
			}
			listed++
		}
		if err == nil && listed != 2200 || err != nil && !errors.Is(err, fencedkv.ErrCorrupt) {
			t.Errorf("%s: %d resources listed, then %v, want all or ErrCorrupt", name, listed, err)
		}
	}
}

// scanKeys is how many keys each resource of the store for scans has.
const scanKeys = 4

// forScans makes a store of three resources to scan, whose records stand on one
// page, between two of so many keys.
func forScans(t *testing.T, others int) (path string, file []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s.db")
	s, err := fencedkv.Open(path, nil)
	must(t, err)
	var claims []fencedkv.Claim
	for i := range 3 {
		claims = append(claims, fencedkv.Claim{Resource: rname(i), Token: token(1, "h")})
	}
	must(t, s.Update(t.Context(), claims, func(_ context.Context, mtx *fencedkv.MultiTx) error {
		for i := range 3 {
			tx, err := mtx.Resource(rname(i))
			must(t, err)
			for k := range scanKeys {
				must(t, tx.Put(b(nameOf(k)), make([]byte, 200))) // too much for a page within the root's
			}
		}
		return nil
	}))
	for _, name := range []string{"four", "longer than the others"} {
		must(t, s.Resource(name).Update(t.Context(), token(1, "h"), func(_ context.Context, tx *fencedkv.Tx) error {
			for k := range others {
				must(t, tx.Put(b(nameOf(k)), nil))
			}
			return nil
		}))
	}
	must(t, s.Close())
	file, err = os.ReadFile(path)
	must(t, err)
	return path, file
}

// A flipped bit in an element of a leaf, or in the key that it names, can make a
// record look like one of another resource, at which a scan would end.
func TestScanIsNotCutShortByAFlippedBit(t *testing.T) {
	path, sound := forScans(t, 1)
	for _, at := range leafElements(t, sound, string(rprefix("r0001"))) {
		key := at + int(native.Uint32(sound[at+4:]))
		for _, from := range []int{at + 4, key} { // positions and sizes, then the key
			for bit := from * 8; bit < (from+12)*8; bit++ {
				file := bytes.Clone(sound)
				file[bit/8] ^= 1 << (bit % 8)
				must(t, os.WriteFile(path, file, 0o600))
				scanDamaged(t, path, fmt.Sprintf("bit %d", bit))
			}
		}
	}
}

// A flipped bit can also show a sound record in the place of another one.
func TestScanIsNotLedAstrayByASoundRecord(t *testing.T) {
	path, sound := forScans(t, 600) // together more than Open compares
	all := leafElements(t, sound, "\x00\x05")
	for to, at := range all {
		for shown, other := range all {
			file := bytes.Clone(sound)
			place := other + int(native.Uint32(sound[other+4:]))
			native.PutUint32(file[at+4:], uint32(place-at))
			must(t, os.WriteFile(path, file, 0o600))
			scanDamaged(t, path, fmt.Sprintf("record %d in the place of %d", shown, to))
		}
	}
}

// leafElements returns the elements of leaves whose keys have the prefix.
func leafElements(t *testing.T, file []byte, prefix string) (at []int) {
	t.Helper()
	for _, page := range elements(file, leafFlag) {
		for _, e := range page {
			if strings.HasPrefix(string(leafKey(file, e)), prefix) {
				at = append(at, e)
			}
		}
	}
	if len(at) == 0 {
		t.Fatalf("no leaf page has keys with the prefix %q", prefix)
	}
	return at
}

// scanDamaged wants every scan of a damaged store to find what is there or to be
// ErrCorrupt.
func scanDamaged(t *testing.T, path, damage string) {
	t.Helper()
	s, err := fencedkv.Open(path, nil)
	if err != nil {
		wantIs(t, err, fencedkv.ErrCorrupt)
		return
	}
	defer s.Close()
	ranges := map[string]fencedkv.Range{"": {}}
	for k := range scanKeys {
		ranges[nameOf(k)] = fencedkv.Range{Prefix: b(nameOf(k))}
	}
	for i := range 3 {
		for prefix, rng := range ranges {
			var want []string
			for k := range scanKeys {
				if strings.HasPrefix(nameOf(k), prefix) {
					want = append(want, nameOf(k))
				}
			}
			for _, rng.Reverse = range []bool{false, true} {
				var got []string
				err := s.Resource(rname(i)).View(t.Context(), func(_ context.Context, tx *fencedkv.ReadTx) error {
					for kv, err := range tx.Scan(rng) {
						if err != nil {
							return err
						}
						got = append(got, string(kv.Key))
					}
					return nil
				})
				if err == nil && !slices.Equal(got, want) || err != nil && !errors.Is(err, fencedkv.ErrCorrupt) {
					t.Errorf("%s: Scan(%+v) of %s: got %q, %v; want %q or ErrCorrupt", damage, rng, rname(i), got, err, want)
				}
				slices.Reverse(want)
			}
		}
	}
}
