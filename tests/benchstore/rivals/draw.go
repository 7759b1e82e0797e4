package rivals

import (
	"fmt"
	"time"

	"github.com/fencedkv/fencedkv/tests/benchstore/chart"
	"github.com/fencedkv/fencedkv/tests/benchstore/contestant"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

// label says in the picture who is who.
var label = map[string]string{
	"ours":    "fencedkv",
	"bolt":    "bbolt Update",
	"batch10": "bbolt Batch, 10 ms",
	"batch1":  "bbolt Batch, 1 ms",
	"pebble":  "pebble, Sync",
	"badger":  "badger, SyncWrites",
	"sqlite":  "SQLite, WAL, FULL",
}

// draw makes the picture of throughput and p99 over writers.
func draw(path string, results measure.Results, synced time.Duration) error {
	throughput := chart.Panel{Title: "durable writes per second", Legend: true, X: "writers", XLog: true, YLog: true}
	p99 := chart.Panel{Title: fmt.Sprintf("p99 in ms (one fdatasync: %.2f ms)", synced.Seconds()*1e3), X: "writers", XLog: true, YLog: true}
	for _, n := range writers {
		throughput.XTicks = append(throughput.XTicks, float64(n))
	}
	p99.XTicks = throughput.XTicks
	for _, c := range contestant.All {
		t, l := chart.Line{Name: label[c.Name]}, chart.Line{Name: label[c.Name]}
		for _, n := range writers {
			samples := results[fmt.Sprintf("put-%d", n)][c.Name]
			t.Points = append(t.Points, chart.Point{X: float64(n), Y: measure.MedianOf(samples, measure.Throughput)})
			l.Points = append(l.Points, chart.Point{X: float64(n), Y: measure.MedianOf(samples, measure.P99) * 1e3})
		}
		throughput.Lines = append(throughput.Lines, t)
		p99.Lines = append(p99.Lines, l)
	}
	return chart.Draw(path, throughput, p99)
}
