package scale

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/disk"
)

// Config is one run.
type Config struct {
	Dir   string  // where the store is made; it must not be in memory
	Share float64 // of the full size, from 0.001 to 1
	Seed  uint64
	Plot  string // the picture's path; empty is none
}

const (
	sizes    = 10
	minShare = 0.001
)

// Run loads, measures at ten sizes and writes its report to out.
func Run(ctx context.Context, c Config, out io.Writer) error {
	if c.Share < minShare || c.Share > 1 {
		return fmt.Errorf("share %v of the full size: give one from %v to 1", c.Share, minShare)
	}
	if err := disk.Check(c.Dir); err != nil {
		return err
	}
	synced, err := disk.SyncTime(c.Dir)
	if err != nil {
		return fmt.Errorf("time a sync: %w", err)
	}
	total := int(fullResources * c.Share)
	fmt.Fprintf(out, "fdatasync median %v in %s, seed %d\n", synced.Round(time.Microsecond), c.Dir, c.Seed)
	fmt.Fprintf(out, "%d resources and %d keys, loaded in order through Store.Update, %d resources in a transaction\n",
		total, total*keysEach, atOnce)

	rng := rand.New(rand.NewPCG(c.Seed, 0))
	var points []Point
	for i := range sizes {
		from, to := total*i/sizes, total*(i+1)/sizes
		p, err := measureAt(ctx, c.Dir, from, to, rng)
		if err != nil {
			return fmt.Errorf("at %d resources: %w", to, err)
		}
		fmt.Fprintln(out, p)
		points = append(points, p)
	}
	first, last := points[0], points[len(points)-1]
	fmt.Fprintf(out, "scale own-heap-growth-bytes %d\n", last.OwnHeap()-first.OwnHeap())
	fmt.Fprintf(out, "scale open-bolt %.3f\n", last.Open.Seconds()/last.BoltOpen.Seconds())
	fmt.Fprintf(out, "scale put-p50-growth %.3f\n", last.PutP50.Seconds()/first.PutP50.Seconds())
	if c.Plot == "" {
		return nil
	}
	if err := draw(c.Plot, points); err != nil {
		return fmt.Errorf("draw %s: %w", c.Plot, err)
	}
	fmt.Fprintf(out, "drew %s\n", c.Plot)
	return nil
}
