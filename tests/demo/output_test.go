package demo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestWithoutFlagsTheLossAndTheRefusalAreShownInPlainText(t *testing.T) {
	t.Parallel()
	got := run(t)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("status %d, stderr %q; want 0 and nothing", got.status, got.stderr)
	}
	for _, want := range []string{
		"client A", "lock", "client B", "store",
		"Act 1, unfenced", "Balance: should be 50, is 70.",
		"Act 2, fenced", "REFUSED: 33 is older than 34", "Balance: should be 50, is 50.",
		"one update without fencing and no update with it",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.ContainsRune(got.stdout, '\x1b') {
		t.Error("the output in a pipe has escape codes")
	}
	if n := widest(got.stdout); n != 79 {
		t.Errorf("the output in a pipe is %d columns wide, want 79", n)
	}
	if t.Failed() {
		t.Logf("the output was\n%s", got.stdout)
	}
}

// The rows of the README's picture come in the output, in this order. Their
// times differ.
func TestTheReadmeShowsWhatIsDrawn(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const indent, times = "    ", 8
	_, rest, _ := strings.Cut(run(t).stdout, "Act 2")
	rows := 0
	for line := range strings.Lines(string(readme)) {
		row := []rune(strings.TrimSuffix(strings.TrimPrefix(line, indent), "\n"))
		if !strings.HasPrefix(line, indent) || len(row) < times || row[times-2] != 's' || row[3] != '.' {
			continue
		}
		rows++
		_, after, found := strings.Cut(rest, string(row[times:])+"\n")
		if !found {
			t.Errorf("act 2 does not show, or not in this place, the README's row\n%s", string(row))
			continue
		}
		rest = after
	}
	if rows < 10 {
		t.Errorf("the README has %d rows of the picture, want at least 10", rows)
	}
}

func TestCOLUMNSSetsTheWidth(t *testing.T) {
	for value, want := range map[string]int{"60": 59, "132": 130, "1000": 199, "0": 79, "-5": 79, "wide": 79} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			cmd, _ := command(t, "--ttl=500ms")
			cmd.Env = append(cmd.Env, "COLUMNS="+value)
			out, err := cmd.Output()
			if got := widest(string(out)); err != nil || got != want {
				t.Errorf("COLUMNS=%s: %d columns, error %v; want %d", value, got, err, want)
			}
		})
	}
}

func widest(out string) (columns int) {
	for line := range strings.Lines(out) {
		columns = max(columns, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return columns
}

func TestJSONIsTheWholePlayOneEventALine(t *testing.T) {
	t.Parallel()
	got := run(t, "--json")
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("status %d, stderr %q; want 0 and nothing", got.status, got.stderr)
	}
	checkShown(t, got.stdout)
}

func TestAClientThatBlocksByItselfIsRefusedLikeAStoppedOne(t *testing.T) {
	t.Parallel()
	got := run(t, "--json", "--pause=block")
	if got.status != 0 {
		t.Fatalf("status %d, stderr %q; want 0", got.status, got.stderr)
	}
	checkShown(t, got.stdout)
	if !strings.Contains(got.stdout, `"how":"blocked"`) || strings.Contains(got.stdout, "SIGSTOP") {
		t.Errorf("the events do not say that the client blocked:\n%s", got.stdout)
	}
}

// The package comment and --help are written by hand and by program.
func TestEveryEventIsDescribedInHelpAndInThePackageComment(t *testing.T) {
	t.Parallel()
	comment, err := os.ReadFile(filepath.Join("..", "..", "cmd", "fencedkv-demo", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	help := run(t, "--help")
	seen := map[string]bool{}
	for _, e := range parse(t, run(t, "--json").stdout) {
		seen[e.Event] = true
	}
	for name := range seen {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^  %s +(\S.*)$`, name)).FindStringSubmatch(help.stdout)
		if line == nil {
			t.Errorf("--help does not describe %q", name)
			continue
		}
		if want := fmt.Sprintf("//	%-14s  %s\n", name, line[1]); !strings.Contains(string(comment), want) {
			t.Errorf("the package comment lacks the line %q of --help", want)
		}
	}
}

func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the scripts need a shell and a pseudo-terminal; the rest of the package covers what they do without")
		return
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("TERM", "xterm")
			return nil
		},
	})
}
