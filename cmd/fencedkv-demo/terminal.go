package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/fencedkv/fencedkv/cmd/fencedkv-demo/internal/timeline"
)

// look tells how wide the timeline may be, and whether it has colour. COLUMNS
// counts before what the terminal says, and in a pipe too.
func look(stdout io.Writer, env func(string) string) (columns int, colour bool) {
	columns = timeline.DefaultColumns
	if file, ok := stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		colour = env("NO_COLOR") == "" && env("TERM") != "dumb"
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			columns = width
		}
	}
	if n, err := strconv.Atoi(env("COLUMNS")); err == nil && n > 0 {
		columns = n
	}
	return columns, colour
}
