package chart

import (
	"errors"
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a diagram of one bar for each group and series, with its value above
// it, so that a 0 is seen too.
type Bars struct {
	Title  string
	Groups []string
	Series []Series
}

// Series has one value for each group.
type Series struct {
	Name   string
	Values []float64
}

const barWidth = 28 * vg.Length(1)

// DrawBars writes the diagram to path, which it replaces.
func DrawBars(path string, b Bars) error {
	if len(b.Groups) == 0 {
		return errors.New("nothing to draw: no group")
	}
	out := newPlot(b.Title, "")
	out.NominalX(b.Groups...)
	out.X.Min, out.X.Max = -0.5, float64(len(b.Groups))-0.5
	out.Add(grid())
	for i, s := range b.Series {
		if len(s.Values) != len(b.Groups) {
			return fmt.Errorf("%s: %d values of %d groups", s.Name, len(s.Values), len(b.Groups))
		}
		offset := barWidth * (vg.Length(i) - vg.Length(len(b.Series)-1)/2)
		bars, err := plotter.NewBarChart(plotter.Values(s.Values), barWidth)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		bars.Offset, bars.Color, bars.LineStyle.Width = offset, plotutil.Color(i), 0
		labels, err := above(s.Values, offset)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		out.Add(bars, labels)
		out.Legend.Add(s.Name, bars)
	}
	if out.Y.Max <= 0 {
		return errors.New("nothing to draw: no value is above 0")
	}
	out.Y.Min = 0
	out.Y.Max *= 1 + headroom
	return write(path, []*plot.Plot{out})
}

// grid has horizontal lines only.
func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color = color.Transparent
	return g
}

// above writes each value above its bar.
func above(values []float64, offset vg.Length) (*plotter.Labels, error) {
	var all plotter.XYLabels
	for i, v := range values {
		all.XYs = append(all.XYs, plotter.XY{X: float64(i), Y: v})
		all.Labels = append(all.Labels, strconv.FormatFloat(v, 'f', -1, 64))
	}
	labels, err := plotter.NewLabels(all)
	if err != nil {
		return nil, err
	}
	labels.Offset = vg.Point{X: offset, Y: vg.Points(3)}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Variant = "Sans"
		labels.TextStyle[i].XAlign = draw.XCenter
	}
	return labels, nil
}
