package layout_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeCodeIsCompiled: each Go block of the README stands, line by line, in
// an Example of the library.
func TestReadmeCodeIsCompiled(t *testing.T) {
	readme := read(t, "../../README.md")
	var examples strings.Builder
	for _, pattern := range []string{"../../fencedkv/*_test.go", "../../locks/memlock/*_test.go", "../../adapters/*/*_test.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.Contains(filepath.Base(path), "example") {
				examples.WriteString(unindent(read(t, path)))
			}
		}
	}
	blocks := strings.Split(readme, "```go\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("the README has %d Go blocks, want at least 2", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(examples.String(), unindent(code)) {
			t.Errorf("this code of the README is in no Example:\n%s", code)
		}
	}
}

// TestReadmeShowsCodeEarly: a reader sees what the project is for by line 20.
func TestReadmeShowsCodeEarly(t *testing.T) {
	before, _, found := strings.Cut(read(t, "../../README.md"), "```go\n")
	if line := strings.Count(before, "\n") + 1; !found || line > 20 {
		t.Errorf("the first code is at line %d, want 20 at the latest", line)
	}
}

// TestReadmeNamesOnlyTargetsThatExist: each `make TARGET` is in the Makefile.
func TestReadmeNamesOnlyTargetsThatExist(t *testing.T) {
	makefile := read(t, "../../Makefile")
	named := regexp.MustCompile("(?m)(?:`|^    )make ([a-z-]+)")
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		targets := named.FindAllStringSubmatch(read(t, filepath.Join("../..", file)), -1)
		if len(targets) == 0 {
			t.Errorf("%s names no target", file)
		}
		for _, target := range targets {
			if !strings.Contains(makefile, "\n"+target[1]+":") {
				t.Errorf("%s names `make %s`, which the Makefile does not have", file, target[1])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// unindent takes the white space at the beginning of each line away.
func unindent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}

// TestLinksLeadSomewhere: what the documents link to, and the directories and
// files that they name, are in the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	named := regexp.MustCompile("`(?:\\./)?((?:adapters|cmd|fencedkv|locks|tests)/[a-z/_.-]+)`")
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		text := read(t, filepath.Join("../..", file))
		for _, match := range append(link.FindAllStringSubmatch(text, -1), named.FindAllStringSubmatch(text, -1)...) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.HasPrefix(target, "https://") {
				continue
			}
			if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
				t.Errorf("%s names %s, which is not there", file, target)
			}
		}
	}
}

// TestReadmesTableNamesEveryAdapter: a lock service whose package is not in the
// table of the numbers is not found.
func TestReadmesTableNamesEveryAdapter(t *testing.T) {
	readme := read(t, "../../README.md")
	adapters, err := os.ReadDir("../../adapters")
	if err != nil {
		t.Fatal(err)
	}
	for _, adapter := range adapters {
		want := "| `adapters/" + adapter.Name() + "` |"
		if strings.HasSuffix(adapter.Name(), "lock") && !strings.Contains(readme, want) {
			t.Errorf("the README's table has no row with %q", want)
		}
	}
}
