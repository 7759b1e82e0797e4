package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a git repository with one promise, its test and the patches.
func repository(t *testing.T, patches map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"go.mod":         "module example.com/m\n\ngo 1.26\n",
		"double.go":      "package m\n\nfunc Double(n int) int {\n\treturn 2 * n\n}\n",
		"double_test.go": "package m\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif Double(2) != 4 {\n\t\t\tt.Error(Double(2))\n\t\t}\n\t})\n}\n",
	}
	for name, text := range patches {
		files["tests/mutations/"+name+".patch"] = text
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return root
}

// breaks is a patch that replaces the line of Double.
func breaks(test, line string) string {
	return "Promise: doubles\nPackage: .\nTest: " + test + "\n\n" +
		"--- a/double.go\n+++ b/double.go\n@@ -1,5 +1,5 @@\n package m\n \n func Double(n int) int {\n-\treturn 2 * n\n+\t" + line + "\n }\n"
}

func TestPatchIsCaughtOnlyByARedTest(t *testing.T) {
	for name, tt := range map[string]struct {
		patch   string
		verdict string
		ok      bool
	}{
		"red":            {breaks("TestDouble/two", "return 3 * n"), "caught", true},
		"green":          {breaks("TestDouble/two", "return n + n"), "SURVIVED", false},
		"does not build": {breaks("TestDouble/two", "return \"\""), "BROKEN", false},
		"does not apply": {strings.Replace(breaks("TestDouble/two", "return 3 * n"), "-\treturn 2", "-\treturn 5", 1), "STALE", false},
		"panics":         {breaks("TestDouble/two", "panic(n)"), "caught", true},
	} {
		t.Run(name, func(t *testing.T) {
			root := repository(t, map[string]string{"one": tt.patch})
			var out strings.Builder
			err := run(t.Context(), []string{"-root", root, "-jobs", "1"}, &out)
			if (err == nil) != tt.ok || !strings.Contains(out.String(), tt.verdict) {
				t.Errorf("run = %v and printed\n%swant %q and success %v", err, &out, tt.verdict, tt.ok)
			}
		})
	}
}

func TestSampleTriesSomeAndWantsAllToApply(t *testing.T) {
	good := breaks("TestDouble/two", "return 3 * n")
	patches := map[string]string{"one": good, "two": good, "three": good, "four": good}
	sample := func() (string, error) {
		var out strings.Builder
		err := run(t.Context(), []string{"-root", repository(t, patches), "-jobs", "1", "-sample", "2", "-seed", "7"}, &out)
		return out.String(), err
	}
	text, err := sample()
	if err != nil || strings.Count(text, "caught") != 3 || !strings.Contains(text, "2 of 4 patches, seed 7") {
		t.Errorf("a sample of 2: %v, and printed\n%s", err, text)
	}
	for name := range patches {
		if !strings.Contains(text, name+".patch") { // it was not chosen
			patches[name] = strings.Replace(good, "-\treturn 2", "-\treturn 5", 1)
		}
	}
	if text, err := sample(); err == nil || strings.Count(text, "STALE") != 2 {
		t.Errorf("a sample beside two patches that do not apply: %v, and printed\n%s", err, text)
	}
}

func TestNamedTestMustBeGreenOnTheUnbrokenTree(t *testing.T) {
	root := repository(t, map[string]string{"one": breaks("TestTriple", "return 3 * n")})
	var out strings.Builder
	err := run(t.Context(), []string{"-root", root, "-jobs", "1"}, &out)
	if err == nil || !strings.Contains(err.Error(), "TestTriple") {
		t.Errorf("run = %v, want an error that names the test that does not exist", err)
	}
}

func TestPatchWithoutHeaderIsRefused(t *testing.T) {
	root := repository(t, map[string]string{"one": "--- a/double.go\n"})
	if err := run(t.Context(), []string{"-root", root}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "Promise") {
		t.Errorf("run = %v, want an error that names the header", err)
	}
	if err := run(t.Context(), []string{"-root", root, "-run", "none"}, &strings.Builder{}); err == nil {
		t.Error("no patch at all passes")
	}
}
