package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/benchstore/chart"
)

func TestDrawWritesAWholePicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plot.svg")
	points := []chart.Point{{X: 1, Y: 10}, {X: 8, Y: 80}, {X: 64, Y: 0}, {X: 256, Y: math.NaN()}}
	err := chart.Draw(path,
		chart.Panel{Title: "left", X: "writers", XLog: true, YLog: true, Legend: true, XTicks: []float64{1, 8, 64, 256}, Lines: []chart.Line{{Name: "some", Points: points}, {Name: "none"}}},
		chart.Panel{Title: "right", X: "keys", YFromZero: true, Legend: true, Lines: []chart.Line{{Name: "more", Points: points}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	requirePicture(t, path, "left", "right", "writers", "some", "more", ">8</text>")
}

func TestBarsShowEachValueAlsoIfItIsZero(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bars.svg")
	b := chart.Bars{Title: "losses", Groups: []string{"one", "two"}, Series: []chart.Series{
		{Name: "without", Values: []float64{17, 4}}, {Name: "with", Values: []float64{0, 0}},
	}}
	if err := chart.DrawBars(path, b); err != nil {
		t.Fatal(err)
	}
	requirePicture(t, path, "losses", "one", "two", "without", "with", ">17</text>", ">4</text>", ">0</text>")
}

func TestBarsThatShowNothingAreAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bars.svg")
	for name, b := range map[string]chart.Bars{
		"no group":         {},
		"a value too few":  {Groups: []string{"one", "two"}, Series: []chart.Series{{Name: "a", Values: []float64{1}}}},
		"nothing but zero": {Groups: []string{"one"}, Series: []chart.Series{{Name: "a", Values: []float64{0}}}},
	} {
		if err := chart.DrawBars(path, b); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// requirePicture fails the test if the file is not XML, or lacks a text.
func requirePicture(t *testing.T, path string, texts ...string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(content)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	for _, want := range texts {
		if !strings.Contains(string(content), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
}
