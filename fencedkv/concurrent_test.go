package fencedkv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// TestSnapshotsAddUp moves amounts between keys from many goroutines. In every
// snapshot, and in every transaction, they add up to what was there at first.
func TestSnapshotsAddUp(t *testing.T) {
	s := open(t, nil)
	r := s.Resource("r")
	const accounts, each = 20, 100
	number := func(v []byte) uint64 { return binary.BigEndian.Uint64(v) }
	bytesOf := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	must(t, r.Update(t.Context(), token(1, ""), func(_ context.Context, tx *fencedkv.Tx) error {
		for i := range accounts {
			must(t, tx.Put(b(nameOf(i)), bytesOf(each)))
		}
		return nil
	}))
	var seq atomic.Uint64
	seq.Store(1)

	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		writers.Go(func() {
			for range 20 {
				from, to := nameOf(rand.IntN(accounts)), nameOf(rand.IntN(accounts))
				err := r.Update(context.Background(), token(seq.Add(uint64(rand.IntN(2))), ""), func(_ context.Context, tx *fencedkv.Tx) error {
					for key, change := range map[string]uint64{from: ^uint64(0), to: 1} {
						v, err := tx.Get(b(key))
						if err != nil {
							return err
						}
						if from == to {
							change = 0
						}
						if err := tx.Put(b(key), bytesOf(number(v)+change)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
		readers.Go(func() {
			for {
				err := r.View(context.Background(), func(_ context.Context, tx *fencedkv.ReadTx) error {
					sum := uint64(0)
					for kv, err := range tx.Scan(fencedkv.Range{}) {
						if err != nil {
							return err
						}
						sum += number(kv.Value)
					}
					if sum != accounts*each {
						t.Errorf("a snapshot adds up to %d, want %d", sum, accounts*each)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	wantMark(t, r, token(seq.Load(), ""))
}
