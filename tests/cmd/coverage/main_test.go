package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const profile = `mode: atomic
example.com/m/a/x.go:1.1,2.2 3 0
example.com/m/a/x.go:3.1,4.2 1 7
example.com/m/b/y.go:1.1,2.2 2 0
example.com/m/b/y.go:1.1,2.2 2 1
`

func TestShareIsCountedPerPackageAndBlock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run([]string{"-profile", file, "-min", "50", "example.com/m/a", "example.com/m/b"}, &out)
	if err == nil || !strings.Contains(err.Error(), "1 packages are below") {
		t.Errorf("run = %v, want one package below", err)
	}
	want := " 25.0 % of example.com/m/a\n100.0 % of example.com/m/b\n"
	if out.String() != want {
		t.Errorf("it prints\n%swant\n%s", &out, want)
	}
	if err := run([]string{"-profile", file, "-min", "20", "example.com/m/a"}, &out); err != nil {
		t.Errorf("run = %v, want nil", err)
	}
	if err := run([]string{"-profile", file, "example.com/m/c"}, &out); err == nil {
		t.Error("a package that is not in the profile passes")
	}
}
