// Command benchlocks measures the Lockers beside other lock libraries. Package
// rivals says what is measured, and how.
//
// Usage, in its folder:
//
//	go run . [--time 6m]
//	go run . --time 20s --only '^acquire-etcd$' --who ours,mutex --cpuprofile cpu.out
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/fencedkv/fencedkv/tests/benchlocks/rivals"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
)

type command struct {
	Time string `env:"BENCH_TIME" default:"6m" help:"How long the run may take."`
	Seed uint64 `help:"Of the orders; 0 chooses one."`

	Only       *regexp.Regexp `help:"Measure only cases whose name this matches, such as ^acquire-etcd$$."`
	Who        []string       `help:"Measure only these contestants, such as ours,mutex."`
	CPUProfile string         `name:"cpuprofile" help:"Path of a processor profile of all clients; empty makes none."`
}

func (c *command) Run(ctx context.Context) error {
	budget, err := measure.Budget(c.Time)
	if err != nil {
		return err
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	stop, err := measure.Profile(c.CPUProfile)
	if err != nil {
		return err
	}
	config := rivals.Config{Budget: budget, Seed: c.Seed, Only: c.Only, Who: c.Who}
	return errors.Join(rivals.Run(ctx, config, os.Stdout), stop())
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c command
	args := kong.Parse(&c, kong.Name("benchlocks"), kong.Description("Measures the Lockers beside other lock libraries."))
	args.BindTo(ctx, (*context.Context)(nil))
	if err := args.Run(&c); err != nil {
		fmt.Fprintln(os.Stderr, "benchlocks:", err)
		stop()
		os.Exit(1)
	}
}
