// Command bars draws a bar chart.
//
// Usage, in the module's folder:
//
//	go run ./chart/bars FILE.json FILE.svg
//
// The JSON is a chart.Bars.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/fencedkv/fencedkv/tests/benchstore/chart"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bars:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("give two paths: the JSON to read and the SVG to write")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var b chart.Bars
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return chart.DrawBars(args[1], b)
}
