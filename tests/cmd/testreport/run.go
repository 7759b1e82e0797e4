package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// run is the command with everything it touches as arguments.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	var flags struct {
		AllowSkips string `help:"File of the skips that are allowed: package, test and reason a line." placeholder:"FILE"`
	}
	exited := -1
	parser, err := kong.New(&flags,
		kong.Name("testreport"),
		kong.Description("Read go test -json on standard input, print its summary, fail on what must not be overlooked."),
		kong.Writers(out, errs),
		kong.Exit(func(code int) { exited = code }),
	)
	if err != nil {
		fmt.Fprintf(errs, "testreport: %v\n", err)
		return 2
	}
	_, err = parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		fmt.Fprintf(errs, "testreport: %v (see --help)\n", err)
		return 2
	}
	allowed := allowList{}
	if flags.AllowSkips != "" {
		f, err := os.Open(flags.AllowSkips)
		if err != nil {
			fmt.Fprintf(errs, "testreport: %v\n", err)
			return 2
		}
		defer f.Close()
		if allowed, err = readAllowList(f); err != nil {
			fmt.Fprintf(errs, "testreport: %s: %v\n", flags.AllowSkips, err)
			return 2
		}
	}
	r := newReport(out)
	if err := r.read(in); err != nil {
		fmt.Fprintf(errs, "testreport: %v\n", err)
		return 1
	}
	return r.finish(allowed)
}
