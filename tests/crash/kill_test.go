package crash_test

import (
	"bufio"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "seed of the random choices; 0 takes the clock")

// TestKilledProcessKeepsItsPromises kills a process with many writers again and
// again, at any moment of its life, its first steps included, and looks each time
// at what it left.
func TestKilledProcessKeepsItsPromises(t *testing.T) {
	const generations = 8
	rnd := rand.New(rand.NewPCG(newSeed(t), 0))
	kills, notes := 0, 0
	for end := time.Now().Add(duration(t, 0.3)); kills == 0 || time.Now().Before(end); {
		path := filepath.Join(t.TempDir(), "store.db")
		p := newPromises()
		for g := 0; g < generations && (g == 0 || time.Now().Before(end)); g++ {
			l := load{Kind: "ours", Path: path, Seed: rnd.Uint64(), Generation: g, Writers: 32, MaxValue: 3000}
			notes += runAndKill(t, l, p, rnd.IntN(2)*rnd.IntN(1000))
			kills++
			s, err := openOurs(path)
			if err != nil {
				t.Fatalf("Open after a kill: %v", err)
			}
			if err := p.check(s); err != nil {
				t.Fatalf("after kill %d of the store: %v", g+1, err)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d kills, %d notes", kills, notes)
}

// runAndKill kills the child after so many notes, at 0 when it has just begun, and
// learns what it wrote to the pipe until then.
func runAndKill(t *testing.T, l load, p *promises, after int) (notes int) {
	t.Helper()
	cmd := l.command(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // half a line is of a note that was not told
		}
		if line != "running\n" {
			notes++
			learn(t, p, line)
		}
		if notes >= after && !killed {
			killed = true
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !killed || stderr.Len() > 0 {
		t.Fatalf("the child ended by itself after %s notes: %s", strconv.Itoa(notes), &stderr)
	}
	return notes
}

func learn(t *testing.T, p *promises, line string) {
	t.Helper()
	n, err := parseNote(line)
	if err == nil {
		err = p.learn(n)
	}
	if err != nil {
		t.Fatalf("the child told %q: %v", line, err)
	}
}
