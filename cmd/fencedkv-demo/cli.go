package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/client"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
)

const description = `Shows what a stale writer does, and how a fencing token stops it.

Two clients withdraw money from one account under a lock. Client A is stopped
between its last look at its lease and its write. In the first act the store
takes the late write, in the second it refuses it.`

// cli are the flags.
type cli struct {
	Lock    string           `default:"memory" placeholder:"ADDRESS" help:"Lock service: memory, redis://host:port, rediss://host:port, etcd://host:port,..., etcds://host:port,... or zk://host:port,.../path. A user and a password may stand before the host."`
	TTL     *time.Duration   `name:"ttl" placeholder:"DURATION" help:"Lease time, and so about half of how long it takes. Default: 1s; etcd 2s and ZooKeeper 4s, the least they keep with their own defaults."`
	JSON    bool             `name:"json" help:"Print one event a line as JSON."`
	Pause   client.Pause     `default:"${pause}" enum:"stop,block,none" help:"How client A is paused. stop: its process is stopped (SIGSTOP). block: it waits and renews no longer. none: not at all, the control run, in which nothing is to be seen. Default: ${pause}."`
	Version kong.VersionFlag `help:"Print the version."`
}

func examples() string {
	var b strings.Builder
	b.WriteString(`Examples:
  fencedkv-demo                                      needs no service
  fencedkv-demo --lock=redis://127.0.0.1:6379
  fencedkv-demo --lock=etcd://127.0.0.1:2379 --ttl=3s
  fencedkv-demo --lock=zk://127.0.0.1:2181/demo
  fencedkv-demo --json | jq -c 'select(.event == "rejected")'
  fencedkv-demo --pause=none                         the control run, exit status 1

Exit status:
  0  shown: an update was lost without fencing and none with it
  1  not shown
  2  wrong usage, or a lease time that the service does not keep
  3  the lock service is unreachable, or not fit to be used
  130  ended by Ctrl-C or SIGTERM
  141  the reader of its output has gone, as with "| head -1"; no message

Events of --json, in the order in which they first appear:
`)
	for _, e := range event.Doc {
		fmt.Fprintf(&b, "  %-14s  %s\n", e[0], e[1])
	}
	b.WriteString("\nNO_COLOR turns colours off; a pipe gets none. COLUMNS sets the width, which is\n" +
		"that of the terminal, and 80 in a pipe.\n")
	return b.String()
}

// errDone: --help or --version has said all.
var errDone = errors.New("done")

// parse reads the flags. It returns errDone, or an error over service.ErrUsage.
func parse(args []string, stdout, stderr io.Writer) (*cli, service.Config, error) {
	c, done := &cli{}, false
	pause := client.PauseBlock
	if process.CanStop {
		pause = client.PauseStop
	}
	parser, err := kong.New(c,
		kong.Name("fencedkv-demo"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Vars{"version": "fencedkv-demo " + version(), "pause": string(pause)},
		kong.Exit(func(int) { done = true }),
		kong.Help(func(o kong.HelpOptions, ctx *kong.Context) error {
			if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
				return err
			}
			_, err := fmt.Fprint(stdout, "\n", examples())
			return err
		}),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 80}),
	)
	if err != nil {
		return nil, service.Config{}, err
	}
	_, err = parser.Parse(args)
	switch {
	case done:
		return nil, service.Config{}, errDone
	case err != nil:
		return nil, service.Config{}, fmt.Errorf("%w: %w", service.ErrUsage, err)
	case c.Pause == client.PauseStop && !process.CanStop:
		return nil, service.Config{}, fmt.Errorf("%w: --pause=stop: this platform cannot stop a process; give block", service.ErrUsage)
	}
	ttl := time.Duration(0)
	if c.TTL != nil {
		if ttl = *c.TTL; ttl <= 0 {
			return nil, service.Config{}, fmt.Errorf("%w: --ttl=%v: it must be positive", service.ErrUsage, ttl)
		}
	}
	lock, err := service.New(c.Lock, ttl)
	return c, lock, err
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
