// Command benchstore measures the store: beside its rivals, and as it grows.
// Package rivals and package scale say what is measured, and how.
//
// Usage, in its folder:
//
//	go run . rivals [--time 8m] [--plot put.svg]
//	go run . rivals --time 20s --only '^put-64$' --who ours,bolt --cpuprofile cpu.out
//	go run . scale [--share 1] [--plot scale.svg]
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

	"github.com/fencedkv/fencedkv/tests/benchstore/disk"
	"github.com/fencedkv/fencedkv/tests/benchstore/measure"
	"github.com/fencedkv/fencedkv/tests/benchstore/rivals"
	"github.com/fencedkv/fencedkv/tests/benchstore/scale"
)

type commands struct {
	Dir  string `help:"Where the stores are made, in a new directory that is removed at the end. Default: the directory of temporary files, or this one if that is in memory."`
	Seed uint64 `help:"Of the orders, keys and values; 0 chooses one."`

	Rivals rivalsCommand `cmd:"" help:"Measure the store beside its rivals."`
	Scale  scaleCommand  `cmd:"" help:"Measure the store as it grows."`
}

type rivalsCommand struct {
	Time string `env:"BENCH_TIME" default:"8m" help:"How long the run may take."`
	Plot string `help:"Path of the picture of writes over writers (SVG); empty draws none."`

	Only       *regexp.Regexp `help:"Measure only cases whose name this matches, such as ^put-64$$."`
	Who        []string       `help:"Measure only these contestants, such as ours,bolt."`
	CPUProfile string         `name:"cpuprofile" help:"Path of a processor profile; empty makes none."`
}

type scaleCommand struct {
	Share float64 `env:"BENCH_SHARE" default:"1" help:"How much of 1,000,000 resources and 10,000,000 keys to load, from 0.001 to 1."`
	Plot  string  `help:"Path of the picture of latency, heap and opening over keys (SVG); empty draws none."`
}

func (r *rivalsCommand) Run(ctx context.Context, c *commands) error {
	budget, err := measure.Budget(r.Time)
	if err != nil {
		return err
	}
	return c.within(func(dir string) error {
		stop, err := measure.Profile(r.CPUProfile)
		if err != nil {
			return err
		}
		config := rivals.Config{Dir: dir, Budget: budget, Seed: c.Seed, Plot: r.Plot, Only: r.Only, Who: r.Who}
		return errors.Join(rivals.Run(ctx, config, os.Stdout), stop())
	})
}

func (s *scaleCommand) Run(ctx context.Context, c *commands) error {
	return c.within(func(dir string) error {
		return scale.Run(ctx, scale.Config{Dir: dir, Share: s.Share, Seed: c.Seed, Plot: s.Plot}, os.Stdout)
	})
}

// within runs fn with a new directory, and removes that.
func (c *commands) within(fn func(dir string) error) error {
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	dir, err := disk.Temp(c.Dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return fn(dir)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c commands
	args := kong.Parse(&c, kong.Name("benchstore"), kong.Description("Measures the store: beside its rivals, and as it grows."))
	args.BindTo(ctx, (*context.Context)(nil))
	if err := args.Run(&c); err != nil {
		fmt.Fprintln(os.Stderr, "benchstore:", err)
		stop()
		os.Exit(1)
	}
}
