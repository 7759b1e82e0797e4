package rivals

import (
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// opening compares the time to open the large file, which both open the same.
func (f *field) opening() measure.Case {
	path := contestant.OursPath(f.large())
	return measure.Case{Name: "open", Entries: []measure.Entry{
		{Name: "ours", Run: repeat(func() (func() error, error) {
			s, err := fencedkv.Open(path, nil)
			if err != nil {
				return nil, err
			}
			return s.Close, nil
		})},
		{Name: "bolt", Run: repeat(func() (func() error, error) {
			db, err := bolt.Open(path, 0o600, contestant.BoltOptions())
			if err != nil {
				return nil, err
			}
			return db.Close, nil
		})},
	}}
}

// repeat measures open and not the close that it returns.
func repeat(open func() (func() error, error)) func(context.Context, time.Duration, uint64) (measure.Sample, error) {
	return func(ctx context.Context, d time.Duration, _ uint64) (measure.Sample, error) {
		var took []time.Duration
		for begun := time.Now(); len(took) == 0 || time.Since(begun) < d; {
			if ctx.Err() != nil {
				return measure.Sample{}, context.Cause(ctx)
			}
			start := time.Now()
			done, err := open()
			if err != nil {
				return measure.Sample{}, err
			}
			took = append(took, time.Since(start))
			if err := done(); err != nil {
				return measure.Sample{}, err
			}
		}
		return measure.Of(took), nil
	}
}
