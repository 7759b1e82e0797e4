// Command coverage reads a profile of go test -coverprofile and fails if one of
// the packages has fewer of its statements covered than it should.
//
// Usage:
//
//	coverage -profile FILE -min PERCENT PACKAGE...
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	profile := flags.String("profile", "", "the file that -coverprofile wrote")
	least := flags.Float64("min", 90, "the least share of covered statements, in percent")
	if err := flags.Parse(args); err != nil {
		return err
	}
	file, err := os.Open(*profile)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	counts, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", *profile, err)
	}
	low := 0
	for _, name := range flags.Args() {
		c := counts[name]
		if c.all == 0 {
			return fmt.Errorf("%s: no statement of %s is in it", *profile, name)
		}
		share := 100 * float64(c.covered) / float64(c.all)
		fmt.Fprintf(out, "%5.1f %% of %s\n", share, name)
		if share < *least {
			low++
		}
	}
	if low > 0 {
		return fmt.Errorf("%d packages are below %.0f %%", low, *least)
	}
	return nil
}

type count struct{ all, covered int }

// read counts each block once: with -coverpkg every test binary reports it.
func read(r io.Reader) (map[string]count, error) {
	type block struct {
		statements int
		hit        bool
	}
	blocks := map[string]block{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue // the mode line
		}
		statements, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		b := blocks[fields[0]]
		blocks[fields[0]] = block{statements, b.hit || fields[2] != "0"}
	}
	counts := map[string]count{}
	for at, b := range blocks {
		file, _, _ := strings.Cut(at, ":")
		c := counts[path.Dir(file)]
		c.all += b.statements
		if b.hit {
			c.covered += b.statements
		}
		counts[path.Dir(file)] = c
	}
	return counts, lines.Err()
}
