package scale_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedkv/fencedkv/tests/benchstore/scale"
)

func TestASmallRunReportsTenSizesAndDraws(t *testing.T) {
	dir := t.TempDir()
	plot := filepath.Join(dir, "scale.svg")
	var out bytes.Buffer
	err := scale.Run(t.Context(), scale.Config{Dir: dir, Share: 0.001, Seed: 1, Plot: plot}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for i := 1; i <= 10; i++ {
		if want := fmt.Sprintf("scale resources=%d keys=%d ", 100*i, 1000*i); !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if svg, err := os.ReadFile(plot); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
		t.Errorf("the picture: got %d bytes, %v, want a whole SVG file", len(svg), err)
	}
}

func TestAShareOutOfRangeIsRefused(t *testing.T) {
	for _, share := range []float64{0, -1, 0.0001, 1.1} {
		if err := scale.Run(t.Context(), scale.Config{Dir: t.TempDir(), Share: share}, &bytes.Buffer{}); err == nil {
			t.Errorf("%v: got nil, want an error", share)
		}
	}
}
