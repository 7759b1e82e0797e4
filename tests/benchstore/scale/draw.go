package scale

import "github.com/fencedkv/fencedkv/tests/benchstore/chart"

// draw makes the picture of latency, heap and opening over keys.
func draw(path string, points []Point) error {
	line := func(name string, value func(Point) float64) chart.Line {
		l := chart.Line{Name: name}
		for _, p := range points {
			l.Points = append(l.Points, chart.Point{X: float64(p.Resources*keysEach) / 1e6, Y: value(p)})
		}
		return l
	}
	const keys = "million keys"
	return chart.Draw(path,
		chart.Panel{Title: "one write, ms", X: keys, YFromZero: true, Legend: true, Lines: []chart.Line{
			line("median", func(p Point) float64 { return p.PutP50.Seconds() * 1e3 }),
			line("p99", func(p Point) float64 { return p.PutP99.Seconds() * 1e3 }),
		}},
		chart.Panel{Title: "Go heap, kB", X: keys, YFromZero: true, Legend: true, Lines: []chart.Line{
			line("fencedkv", func(p Point) float64 { return float64(p.Heap) / (1 << 10) }),
			line("bbolt", func(p Point) float64 { return float64(p.BoltHeap) / (1 << 10) }),
		}},
		chart.Panel{Title: "opening the file, ms", X: keys, YFromZero: true, Legend: true, Lines: []chart.Line{
			line("fencedkv", func(p Point) float64 { return p.Open.Seconds() * 1e3 }),
			line("bbolt", func(p Point) float64 { return p.BoltOpen.Seconds() * 1e3 }),
		}},
	)
}
