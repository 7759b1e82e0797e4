package prove_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// row is what both runs on a service have shown.
type row struct {
	Service          string
	Unfenced, Fenced result
}

type result struct{ Acknowledged, Stops, Refusals, Lost int }

func figures(o outcome) result {
	return result{o.acknowledged, o.stops, o.refusals, o.lost()}
}

// report prints the table of the services that were run, and writes what is drawn of it to PROVE_RESULT.
func report(t *testing.T, rows []row, each time.Duration) {
	t.Helper()
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.Service == "" })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\twithout fencing\t\t\twith fencing\t\t\t\t\t")
	fmt.Fprintln(w, "service\tincrements\tstops\tLOST\tincrements\tstops\trefusals\tLOST\tlinearizable\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\tyes\t\n", r.Service,
			r.Unfenced.Acknowledged, r.Unfenced.Stops, r.Unfenced.Lost,
			r.Fenced.Acknowledged, r.Fenced.Stops, r.Fenced.Refusals, r.Fenced.Lost)
	}
	w.Flush()
	t.Logf("%d clients, %v each:\n%s", clients, each, &b)

	path := os.Getenv("PROVE_RESULT")
	if path == "" {
		return
	}
	// What tests/benchstore/chart/bars draws.
	type series struct {
		Name   string
		Values []int
	}
	var picture struct {
		Title  string
		Groups []string
		Series [2]series
	}
	picture.Title = fmt.Sprintf("updates lost by %d processes in %.0f s", clients, each.Seconds())
	picture.Series[0].Name, picture.Series[1].Name = "without fencing", "with fencing"
	for _, r := range rows {
		picture.Groups = append(picture.Groups, r.Service)
		picture.Series[0].Values = append(picture.Series[0].Values, r.Unfenced.Lost)
		picture.Series[1].Values = append(picture.Series[1].Values, r.Fenced.Lost)
	}
	text, err := json.Marshal(picture)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
