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
	for _, want := range []string{"left", "right", "writers", "some", "more", ">8</text>"} {
		if !strings.Contains(string(content), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
}
