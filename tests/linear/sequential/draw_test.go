package sequential_test

import (
	"io"
	"time"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// Names and keys that are prefixes of each other, hold the bytes that an encoding
// might use, or are as long as allowed.
var (
	names  = rapid.SampledFrom([]string{"a", "ab", "a/b", "\x00", "\x00\x01", "\xff\xff", long("n", fencedkv.MaxResource)})
	keys   = rapid.SampledFrom([]string{"k", "kk", "k\x00", "k\xff", "l", "\x00", "\xff", "\xff\xff", long("k", fencedkv.MaxKey)})
	bounds = rapid.SampledFrom([]string{"", "", "k", "kk", "k\x00\x00", "l", "\x00", "\xff", "\xff\xff\xff", "between"})
	values = rapid.Custom(func(t *rapid.T) string {
		size := rapid.SampledFrom([]int{0, 1, 100, 5000, 70_000}).Draw(t, "size")
		return long(rapid.SampledFrom([]string{"v", "w", "\x00"}).Draw(t, "byte"), size)
	})
	ranges = rapid.Custom(func(t *rapid.T) fencedkv.Range {
		return fencedkv.Range{
			Prefix:  []byte(bounds.Draw(t, "prefix")),
			Start:   []byte(bounds.Draw(t, "start")),
			End:     []byte(bounds.Draw(t, "end")),
			Reverse: rapid.Bool().Draw(t, "reverse"),
			Limit:   rapid.IntRange(0, 3).Draw(t, "limit"),
		}
	})
	tokens = rapid.Custom(func(t *rapid.T) fence.Token {
		return fence.Token{
			Seq:     rapid.SampledFrom([]uint64{0, 1, 2, 2, 3, 3, 4, 5, 1<<53 + 1, 1<<64 - 1}).Draw(t, "seq"),
			Lineage: rapid.SampledFrom([]string{"l", "l", "l", "l", "l", "l", "m", "", long("l", fence.MaxLineage+1)}).Draw(t, "lineage"),
			Holder:  rapid.SampledFrom([]string{"h", "h", "h", "h", "i", "", long("h", fence.MaxHolder)}).Draw(t, "holder"),
		}
	})
)

func long(s string, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = s[0]
	}
	return string(b)
}

// options are drawn anew for each Open.
func options(t *rapid.T) *fencedkv.Options {
	if rapid.Bool().Draw(t, "defaults") {
		return nil
	}
	o := &fencedkv.Options{
		Timeout:          rapid.SampledFrom([]time.Duration{0, time.Nanosecond, time.Minute}).Draw(t, "timeout"),
		AcceptLostCommit: rapid.Bool().Draw(t, "accept lost commit"),
	}
	if rapid.Bool().Draw(t, "logger") {
		o.Logger = hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Trace})
	}
	return o
}
