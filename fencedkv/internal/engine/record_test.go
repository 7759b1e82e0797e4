package engine_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
	"github.com/fencedkv/fencedkv/fencedkv/internal/engine"
)

func FuzzValueRecordIsExact(f *testing.F) {
	f.Add("r", []byte("k"), []byte("v"), uint32(0))
	f.Add("", []byte{}, []byte{}, uint32(7))
	f.Add("accounts/42", bytes.Repeat([]byte{0xff}, 300), make([]byte, 5000), uint32(40000))
	f.Fuzz(func(t *testing.T, resource string, key, value []byte, bit uint32) {
		if len(resource) > 512 || len(key) > 16<<10 {
			return
		}
		record := engine.EncodeValue(resource, key, value)
		got, err := engine.DecodeValue(resource, key, record)
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("decoded %q, %v, want %q", got, err, value)
		}
		// A CRC finds every flipped bit, in the record and in the names.
		n := bit % uint32(8*len(record))
		record[n/8] ^= 1 << (n % 8)
		if got, err := engine.DecodeValue(resource, key, record); err == nil {
			t.Fatalf("bit %d is flipped, and the record decodes to %q", n, got)
		}
		record[n/8] ^= 1 << (n % 8)
		if len(key) > 0 {
			other := bytes.Clone(key)
			other[0] ^= 1
			if _, err := engine.DecodeValue(resource, other, record); err == nil {
				t.Fatal("the record is taken under another key")
			}
			if _, err := engine.DecodeValue(resource+string(key[:1]), key[1:], record); err == nil {
				t.Fatal("the record is taken under another division of its names")
			}
		}
		if len(value) > 0 {
			head := len(record) - len(value)
			shorter := append(bytes.Clone(record[:head]), record[head+1:]...)
			if _, err := engine.DecodeValue(resource, append(bytes.Clone(key), value[0]), shorter); err == nil {
				t.Fatal("the record is taken under another division of key and value")
			}
		}
	})
}

func FuzzMarkRecordIsExact(f *testing.F) {
	f.Add("r", "lock/a@1", uint64(34), "holder", int64(1e18), uint32(3))
	f.Add("r", "", uint64(math.MaxUint64), "", int64(-1), uint32(99))
	f.Fuzz(func(t *testing.T, resource, lineage string, seq uint64, holder string, at int64, bit uint32) {
		want := fence.Mark{
			Token:    fence.Token{Lineage: lineage, Seq: seq, Holder: holder},
			RaisedAt: time.Unix(0, at).UTC(),
		}
		if want.Validate() != nil || len(resource) > 512 {
			return
		}
		record := engine.EncodeMark(resource, want)
		got, err := engine.DecodeMark(resource, record)
		if err != nil || got.Token != want.Token || !got.RaisedAt.Equal(want.RaisedAt) && at > math.MinInt64+1e9 && at < math.MaxInt64-1e9 {
			t.Fatalf("decoded %v, %v, want %v", got, err, want)
		}
		n := bit % uint32(8*len(record))
		record[n/8] ^= 1 << (n % 8)
		if got, err := engine.DecodeMark(resource, record); err == nil {
			t.Fatalf("bit %d is flipped, and the record decodes to %v", n, got)
		}
	})
}

func FuzzRecordsOfAnythingAreErrorsNotPanics(f *testing.F) {
	f.Add("r", []byte("k"), []byte{})
	f.Add("r", []byte("k"), []byte("M1234567"))
	f.Add("r", []byte("k"), engine.Header{Marks: engine.Tally{Count: 1}}.Encode())
	f.Fuzz(func(t *testing.T, resource string, key, record []byte) {
		if v, err := engine.DecodeValue(resource, key, record); err == nil && !bytes.Equal(engine.EncodeValue(resource, key, v), record) {
			t.Error("a value record has two forms")
		}
		if m, err := engine.DecodeMark(resource, record); err == nil && m.IsZero() {
			t.Error("a mark record decodes to no mark")
		}
		if h, err := engine.DecodeHeader(record); err == nil && !bytes.Equal(h.Encode(), record) {
			t.Error("a header has two forms")
		}
		if r, k, err := engine.DecodeKey(record); err == nil && !bytes.Equal(engine.EncodeKey(r, k), record) {
			t.Error("a key has two forms")
		}
	})
}

func FuzzKeysKeepTheirOrder(f *testing.F) {
	f.Add("a", []byte("k"), "ab", []byte("\x00"))
	f.Add("\xff", []byte{0xff}, "\xff\xff", []byte{0})
	f.Fuzz(func(t *testing.T, r1 string, k1 []byte, r2 string, k2 []byte) {
		for _, r := range []string{r1, r2} {
			if r == "" || len(r) > 512 {
				return
			}
		}
		if len(k1) == 0 || len(k2) == 0 {
			return
		}
		a, b := engine.EncodeKey(r1, k1), engine.EncodeKey(r2, k2)
		if r, k, err := engine.DecodeKey(a); err != nil || r != r1 || !bytes.Equal(k, k1) {
			t.Fatalf("decoded %q, %q, %v, want %q, %q", r, k, err, r1, k1)
		}
		if r1 == r2 {
			if got, want := bytes.Compare(a, b), bytes.Compare(k1, k2); got != want {
				t.Errorf("keys %q and %q of one resource compare as %d, want %d", k1, k2, got, want)
			}
			return
		}
		// All keys of one resource are on one side of all keys of another.
		lo, hi := engine.EncodeKey(r1, []byte{0}), engine.EncodeKey(r1, bytes.Repeat([]byte{0xff}, 64))
		if bytes.Compare(lo, b) <= 0 && bytes.Compare(b, hi) <= 0 {
			t.Errorf("key %q of %q lies between the keys of %q", k2, r2, r1)
		}
	})
}

func TestHeaderIsExact(t *testing.T) {
	want := engine.Header{
		ID:    [16]byte{1, 15: 9},
		Marks: engine.Tally{Count: math.MaxUint64, Digest: 1<<63 + 5}, Values: engine.Tally{Count: 7, Digest: 8},
		LostCommits: 3, LastLost: time.Unix(1, 2).UTC(),
	}
	for _, want := range []engine.Header{want, {}} {
		record := want.Encode()
		if got, err := engine.DecodeHeader(record); err != nil || got != want {
			t.Errorf("decoded %+v, %v, want %+v", got, err, want)
		}
		for n := range 8 * len(record) {
			record[n/8] ^= 1 << (n % 8)
			if _, err := engine.DecodeHeader(record); err == nil {
				t.Errorf("bit %d is flipped, and the header decodes", n)
			}
			record[n/8] ^= 1 << (n % 8)
		}
		for n := range record {
			if _, err := engine.DecodeHeader(record[:n]); err == nil {
				t.Errorf("%d bytes of a header decode", n)
			}
		}
	}
}

func TestAbsurdClocksDoNotStopRaises(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(math.MaxInt64/2, 0), time.Unix(-1<<40, 0)} {
		m := fence.Mark{Token: fence.Number(1), RaisedAt: at}
		got, err := engine.DecodeMark("r", engine.EncodeMark("r", m))
		if err != nil || got.Token != m.Token {
			t.Errorf("raised %v: decoded %v, %v", at, got, err)
		}
		if got.RaisedAt.After(at) != at.Before(time.Unix(0, 0)) {
			t.Errorf("raised %v: decoded %v, want the nearest time there is", at, got.RaisedAt)
		}
	}
}
