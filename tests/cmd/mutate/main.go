// Command mutate proves that the tests can fail. It reads patches that each
// break one promise, applies one at a time to a copy of the repository, runs
// the tests that the patch names, and fails unless each of them goes red.
//
// Usage, in the tests module:
//
//	go run ./cmd/mutate [-run SUBSTRING] [-jobs N]
//
// A patch starts with a header:
//
//	Promise: an equal number of another holder is refused
//	Dir: .
//	Package: ./fencedkv/fence
//	Test: TestAdmitDecidesEveryRow/equal_and_another_holder
//
// Dir is the module's folder. Test may be given more than once. Each test must
// pass on the unbroken copy, which is run first.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("run", "", "take only patches whose file name contains this")
	jobs := flags.Int("jobs", 2, "how many patches are tried at once")
	root := flags.String("root", "..", "the repository's root")
	if err := flags.Parse(args); err != nil {
		return err
	}
	mutations, err := load(filepath.Join(*root, "tests", "mutations"), *only)
	if err != nil {
		return err
	}

	start := time.Now()
	temp, err := os.MkdirTemp("", "fencedkv-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // a temporary directory
	copies := make(chan string, *jobs)
	for i := range *jobs {
		dir := filepath.Join(temp, fmt.Sprint(i))
		if err := copyTree(ctx, *root, dir); err != nil {
			return err
		}
		copies <- dir
	}

	intact := <-copies
	for _, group := range byPackage(mutations) {
		if red, output, err := runTests(ctx, intact, group); err != nil || len(red) > 0 {
			return fmt.Errorf("on the unbroken tree, %s in %s: red %v, %w\n%s",
				strings.Join(group.Tests, " "), group.Package, red, orNone(err), output)
		}
	}
	copies <- intact

	var wg sync.WaitGroup
	var mu sync.Mutex
	survived := 0
	for _, m := range mutations {
		dir := <-copies
		wg.Go(func() {
			defer func() { copies <- dir }()
			verdict, ok := try(ctx, dir, m)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "%-9s %s: %s\n", verdict, m.Name, m.Promise)
			if !ok {
				survived++
			}
		})
	}
	wg.Wait()
	fmt.Fprintf(out, "%d patches, %d not caught, %v\n", len(mutations), survived, time.Since(start).Round(time.Second))
	if survived > 0 {
		return fmt.Errorf("%d patches were not caught by the tests they name", survived)
	}
	return ctx.Err()
}

func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("no other error")
	}
	return err
}
