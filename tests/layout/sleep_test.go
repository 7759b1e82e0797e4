package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maySleep are the files whose sleep is what they do, not a guess at how long
// something else takes.
var maySleep = map[string]string{
	"tests/device/server_linux_test.go": "a device that takes its time before a sync fails",
}

// TestNoTestSleepsInRealTime: a test waits for the event, or runs in the bubble
// of testing/synctest, where time costs nothing and is exact.
func TestNoTestSleepsInRealTime(t *testing.T) {
	found, inBubble := 0, 0
	for path, file := range testSources(t) {
		bubbles := calls(file, "synctest", "Test")
		for _, sleep := range append(calls(file, "time", "Sleep"), waits(file)...) {
			found++
			if within(sleep, bubbles) {
				inBubble++
				continue
			}
			if maySleep[filepath.ToSlash(path)] != "" {
				continue
			}
			t.Errorf("%s sleeps outside of synctest.Test: wait for what is to happen", path)
		}
	}
	if found < 20 || inBubble == 0 {
		t.Errorf("found %d sleeps, %d of them in a bubble; this test does not see what it is for", found, inBubble)
	}
}

// calls are the calls of the package's function in the file.
func calls(file ast.Node, pkg, name string) (found []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if x, isName := identOf(f); ok && isName && x == pkg && f.Sel.Name == name {
			found = append(found, call)
		}
		return true
	})
	return found
}

func identOf(s *ast.SelectorExpr) (string, bool) {
	if s == nil {
		return "", false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return x.Name, true
}

// waits are the statements <-time.After(d), which are sleeps too. In a select it
// is a bound, and with time.Until(t) it waits for a moment that is known.
func waits(file ast.Node) (found []ast.Node) {
	bounds := make(map[ast.Stmt]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommClause:
			bounds[n.Comm] = true
		case *ast.ExprStmt:
			receive, ok := n.X.(*ast.UnaryExpr)
			if ok && receive.Op == token.ARROW && !bounds[n] &&
				len(calls(receive, "time", "After")) > 0 && len(calls(receive, "time", "Until")) == 0 {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

func within(n ast.Node, all []ast.Node) bool {
	for _, outer := range all {
		if outer.Pos() <= n.Pos() && n.End() <= outer.End() {
			return true
		}
	}
	return false
}

// testSources parses the test files of all modules.
func testSources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel("../..", path)
		files[name] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
