package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"time"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/client"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/event"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/play"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/process"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/resource"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/service"
	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/timeline"
)

// The exit statuses.
const (
	exitShown       = 0
	exitNotShown    = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitInterrupted = 130 // 128 + SIGINT, as shells count
	exitReaderGone  = 141 // 128 + SIGPIPE
)

// run is the program: with a role it is one of the processes of the play, and
// without one it is the play. It ends early when ctx does, or at a signal.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	if role := process.Role(env); role != "" {
		return runRole(ctx, role, stdin, stdout, stderr)
	}
	complain := func(err error) { say(stderr, "%v", err) }
	flags, lock, err := parse(args, stdout, stderr)
	if errors.Is(err, errDone) {
		return exitShown
	}
	if err != nil {
		complain(err)
		say(stderr, "see fencedkv-demo --help")
		return exitUsage
	}

	ctx, stop := signal.NotifyContext(ctx, endSignals...)
	defer stop()
	catchPipe()
	out := &output{w: stdout}
	var events event.Sink = event.NewJSON(out)
	if !flags.JSON {
		columns, colour := look(stdout, env)
		events = timeline.New(out, columns, colour)
	}
	summary, err := play.Run(ctx, play.Config{Lock: lock, Pause: flags.Pause, Sink: events, Warn: complain})
	if out.gone {
		return exitReaderGone // quietly, as other programs in a pipe
	}
	if err != nil {
		return explain(ctx, err, lock, stderr)
	}
	if !summary.Shown {
		complain(fmt.Errorf("not shown: %s", reason(summary, flags)))
		return exitNotShown
	}
	return exitShown
}

// runRole is one process of the play.
func runRole(ctx context.Context, role string, stdin io.Reader, stdout, stderr io.Writer) int {
	roles := map[string]func(context.Context, *process.Conn) error{
		play.RoleClient:   client.Run,
		play.RoleResource: resource.Run,
	}
	do, ok := roles[role]
	if !ok {
		say(stderr, "%s: no such role", role)
		return exitUsage
	}
	ctx, parent := process.Parent(ctx, stdin, stdout)
	if err := do(ctx, parent); err != nil && ctx.Err() == nil {
		say(stderr, "%v", err)
		return exitNotShown
	}
	return exitShown
}

// explain says why the play has not come to its end, and what to do.
func explain(ctx context.Context, err error, lock service.Config, stderr io.Writer) int {
	kind := play.KindOf(err)
	if ctx.Err() != nil || kind == service.Other && signalled(ctx) {
		say(stderr, "interrupted; nothing is left running")
		return exitInterrupted
	}
	switch kind {
	case service.Usage:
		say(stderr, "%v", err)
		say(stderr, "give a --ttl that the service keeps, or leave it out")
		return exitUsage
	case service.Unreachable:
		say(stderr, "%v", err)
		say(stderr, "is it running at %s? --lock=memory needs no service", lock)
		return exitUnreachable
	}
	say(stderr, "not shown: %v", err)
	return exitNotShown
}

// signalled waits a moment for a signal that is on its way. One to the whole
// process group can end a child that is being started, which is not in a group
// of its own yet, before this process has heard of it.
func signalled(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(200 * time.Millisecond):
		return false
	}
}

// reason says what a play to the end has failed to show.
func reason(s event.Summary, flags *cli) string {
	switch {
	case s.LostUpdates.Fenced > 0 || s.Expected.Fenced != s.Actual.Fenced:
		return "the fenced act lost an update"
	case flags.Pause == client.PauseNone:
		return "with --pause=none nobody writes late, so that no update is lost; leave it out"
	}
	return "the unfenced act happened to lose no update; try again"
}

// say writes one line for people. There is nobody to tell if that fails.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, "fencedkv-demo: "+format+"\n", args...)
}
