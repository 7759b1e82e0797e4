package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSummaryAndStatusOfCannedStreams compares the whole output with
// testdata/NAME.want. The streams are what go test -json printed, some shortened.
func TestSummaryAndStatusOfCannedStreams(t *testing.T) {
	for _, c := range []struct {
		name, stream, allow string
		want                int
	}{
		{"ok", "ok", "", 0},
		{"a test fails", "fails", "", 1},
		{"the code does not build", "broken", "", 1},
		{"vet finds something", "vet", "", 1},
		{"a test panics", "panics", "", 1},
		{"tests run out of time", "timeout", "", 1},
		{"TestMain fails", "testmain", "", 1},
		{"no test at all", "none", "", 1},
		{"an empty stream", "empty", "", 1},
		{"the stream is cut", "cut", "", 1},
		{"several packages and plain words of go", "mixed", "", 1},
		{"skips without a list", "skips", "", 1},
		{"a skip that the list lacks", "skips", "allow-one", 1},
		{"all skips listed", "skips", "allow", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := os.Open(filepath.Join("testdata", c.stream+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var args []string
			golden := c.stream
			if c.allow != "" {
				args = append(args, "--allow-skips", filepath.Join("testdata", c.allow+".txt"))
				golden += "-" + c.allow
			}
			var out, errs bytes.Buffer
			if got := run(args, in, &out, &errs); got != c.want {
				t.Errorf("exit status %d, want %d", got, c.want)
			}
			if errs.Len() > 0 {
				t.Errorf("standard error: %q, want nothing", &errs)
			}
			golden = filepath.Join("testdata", golden+".want")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != string(want) {
				t.Errorf("output:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestWrongUsageIsStatus2AndSaysWhy(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short.txt")
	if err := os.WriteFile(short, []byte("example.test/skip TestS\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--allow-skips", "testdata/none.txt"}, "testdata/none.txt"},
		{[]string{"--allow-skips", short}, "line 1: want package, test and reason"},
		{[]string{"--nonsense"}, "--nonsense"},
		{[]string{"argument"}, "argument"},
	} {
		var out, errs bytes.Buffer
		if got := run(c.args, strings.NewReader(""), &out, &errs); got != 2 {
			t.Errorf("%v: exit status %d, want 2", c.args, got)
		}
		if !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: %q, want %q in it", c.args, &errs, c.want)
		}
	}
}

func TestHelpIsStatus0(t *testing.T) {
	var out, errs bytes.Buffer
	if got := run([]string{"--help"}, strings.NewReader(""), &out, &errs); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
	if !strings.Contains(out.String(), "--allow-skips=FILE") {
		t.Errorf("help: %q, want the flag in it", &out)
	}
}
