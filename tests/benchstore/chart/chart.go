// Package chart draws the pictures of the benchmarks as SVG files.
//
// # Caveats
//
// On a logarithmic axis a point that is not above 0 is left out.
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Panel is one diagram of a picture.
type Panel struct {
	Title      string
	X          string // what is to the right
	XLog, YLog bool
	YFromZero  bool      // the axis begins at 0
	Legend     bool      // says above the lines which is whose
	XTicks     []float64 // the marks of the axis; none are chosen
	Lines      []Line    // the first is drawn thicker
}

// Line is one contestant's or one quantity's.
type Line struct {
	Name   string
	Points []Point
}

// Point of a Line.
type Point struct{ X, Y float64 }

const (
	panelWidth  = 13 * vg.Centimeter
	panelHeight = 10 * vg.Centimeter

	// headroom is the share of the height that the legend needs, of what the
	// lines have.
	headroom = 0.5
)

// Draw writes panels side by side to path, which it replaces.
func Draw(path string, panels ...Panel) (err error) {
	row := make([]*plot.Plot, len(panels))
	for i, p := range panels {
		if row[i], err = p.plot(); err != nil {
			return fmt.Errorf("%s: %w", p.Title, err)
		}
	}
	return write(path, row)
}

// write draws the row of plots, each as wide as a panel.
func write(path string, row []*plot.Plot) error {
	svg := vgsvg.New(panelWidth*vg.Length(len(row)), panelHeight)
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: vg.Centimeter, PadTop: vg.Points(6), PadRight: vg.Points(12), PadBottom: vg.Points(4), PadLeft: vg.Points(4)}
	for i, c := range plot.Align([][]*plot.Plot{row}, tiles, canvas)[0] {
		row[i].Draw(c)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = svg.WriteTo(f)
	return errors.Join(err, f.Close())
}

// newPlot is a plot in the style of all pictures.
func newPlot(title, x string) *plot.Plot {
	out := plot.New()
	out.Title.Text = title
	out.X.Label.Text = x
	out.Legend.Top, out.Legend.Left = true, true
	for _, style := range []*text.Style{
		&out.Title.TextStyle, &out.X.Label.TextStyle, &out.X.Tick.Label, &out.Y.Tick.Label, &out.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	return out
}

func (p Panel) plot() (*plot.Plot, error) {
	out := newPlot(p.Title, p.X)
	if p.XLog {
		out.X.Scale, out.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.YLog {
		out.Y.Scale, out.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if len(p.XTicks) > 0 {
		var ticks plot.ConstantTicks
		for _, v := range p.XTicks {
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
		}
		out.X.Tick.Marker = ticks
	}
	out.Add(plotter.NewGrid())
	for i, l := range p.Lines {
		points := p.drawable(l.Points)
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		line.Color, dots.Color = plotutil.Color(i), plotutil.Color(i)
		dots.Shape = plotutil.Shape(i)
		line.Width = vg.Points(1)
		if i == 0 {
			line.Width = vg.Points(3)
		}
		out.Add(line, dots)
		if p.Legend {
			out.Legend.Add(l.Name, line, dots)
		}
	}
	if p.YFromZero {
		out.Y.Min = 0
	}
	switch {
	case p.Legend && p.YLog && out.Y.Min > 0:
		out.Y.Max *= math.Pow(out.Y.Max/out.Y.Min, headroom)
	case p.Legend:
		out.Y.Max += (out.Y.Max - out.Y.Min) * headroom
	}
	return out, nil
}

func (p Panel) drawable(points []Point) plotter.XYs {
	var xys plotter.XYs
	for _, q := range points {
		switch {
		case math.IsNaN(q.Y) || math.IsInf(q.Y, 0):
		case p.XLog && q.X <= 0, p.YLog && q.Y <= 0:
		default:
			xys = append(xys, plotter.XY(q))
		}
	}
	return xys
}
