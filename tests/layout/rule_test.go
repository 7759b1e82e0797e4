package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheRuleStandsInOnePlace: outside of package fence nobody compares the Seq
// of tokens by < or > to decide on a write.
func TestTheRuleStandsInOnePlace(t *testing.T) {
	for path, file := range sources(t) {
		if !strings.HasPrefix(path, "fencedkv/") || strings.HasPrefix(path, "fencedkv/fence/") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if ok && slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}, b.Op) &&
				(isSeq(b.X) || isSeq(b.Y)) {
				t.Errorf("%s orders tokens; call fence.Admit", path)
			}
			return true
		})
	}
}

func isSeq(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Seq"
}

// TestSequenceNumbersAreNeverFloatingPoint: they lose digits from 2^53.
func TestSequenceNumbersAreNeverFloatingPoint(t *testing.T) {
	for path, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && strings.HasPrefix(f.Name, "float") && isSeq(call.Args[0]) {
				t.Errorf("%s converts a Seq to %s", path, f.Name)
			}
			return true
		})
	}
}

// sources parses the files of the library's module that are not tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "tests" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		files[path] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d files, want the whole library", len(files))
	}
	return files
}
