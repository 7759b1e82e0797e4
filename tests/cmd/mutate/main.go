// Command mutate proves that the tests can fail. It reads patches that each
// break one promise, applies one at a time to a copy of the repository, runs
// the tests that the patch names, and fails unless each of them goes red.
//
// Usage, in the tests module:
//
//	go run ./cmd/mutate [-run SUBSTRING] [-jobs N] [-sample N [-seed N]]
//
// With a sample so many of the patches are tried, chosen by the seed; each of the
// others must apply.
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
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
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
	sample := flags.Int("sample", 0, "how many patches are tried, chosen at random; 0: all")
	seed := flags.Uint64("seed", 0, "of the choice; 0 takes one that is printed")
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
	if n := stale(ctx, intact, mutations, out); n > 0 {
		return fmt.Errorf("%d patches do not apply", n)
	}
	if *sample > 0 && *sample < len(mutations) {
		if *seed == 0 {
			*seed = rand.Uint64()
		}
		fmt.Fprintf(out, "%d of %d patches, seed %d\n", *sample, len(mutations), *seed)
		mutations = choose(mutations, *sample, *seed)
	}
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

// stale prints the patches that do not apply and returns how many they are.
func stale(ctx context.Context, root string, all []Mutation, out io.Writer) (n int) {
	for _, m := range all {
		if text, err := git(ctx, root, "apply", "--check", m.Patch); err != nil {
			fmt.Fprintf(out, "%-9s %s: %v\n%s", "STALE", m.Name, err, text)
			n++
		}
	}
	return n
}

// choose returns n of the mutations, in their order.
func choose(all []Mutation, n int, seed uint64) []Mutation {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n]
	slices.Sort(order)
	var chosen []Mutation
	for _, i := range order {
		chosen = append(chosen, all[i])
	}
	return chosen
}

func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("no other error")
	}
	return err
}
