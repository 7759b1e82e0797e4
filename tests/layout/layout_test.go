// Package layout_test keeps the rules of the repository: which package may
// depend on what, and what each must say of itself.
package layout_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fencedkv/fencedkv/"

type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	Doc        string
	Standard   bool
	Imports    []string
	Deps       []string
}

// list runs go list on packages of the library's module.
func list(t *testing.T, env []string, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Name,Dir,Doc,Standard,Imports,Deps"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = append(cmd.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, &stderr)
	}
	var all []pkg
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

const (
	bbolt     = "go.etcd.io/bbolt"
	redis     = "github.com/redis/"
	etcd      = "go.etcd.io/etcd/"
	zookeeper = "github.com/go-zookeeper/"
	grpc      = "google.golang.org/"
)

// TestEachPackageBuildsOnlyWhatItIsFor: who embeds the store does not build a
// lock client, and who uses one adapter builds that client alone.
func TestEachPackageBuildsOnlyWhatItIsFor(t *testing.T) {
	for name, forbidden := range map[string][]string{
		"fencedkv":           {redis, etcd, zookeeper, grpc, module + "adapters/"},
		"adapters/redislock": {bbolt, etcd, zookeeper, grpc, module + "adapters/etcdlock", module + "adapters/zklock"},
		"adapters/etcdlock":  {bbolt, redis, zookeeper, module + "adapters/redislock", module + "adapters/zklock"},
		"adapters/zklock":    {bbolt, redis, etcd, grpc, module + "adapters/redislock", module + "adapters/etcdlock"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dep := range list(t, nil, "./"+name)[0].Deps {
				for _, prefix := range forbidden {
					if dep == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(dep, prefix) {
						t.Errorf("%s builds %s", name, dep)
					}
				}
			}
		})
	}
}

// TestPurePackagesUseTheStandardLibraryOnly: the rule and the contract can be
// implemented by anybody without a dependency.
func TestPurePackagesUseTheStandardLibraryOnly(t *testing.T) {
	for name, allowed := range map[string][]string{
		"fencedkv/fence": nil,
		"locks":          {module + "fencedkv/fence"},
		"locks/locktest": {module + "fencedkv/fence", module + "locks"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dep := range list(t, nil, "-deps", "./"+name) {
				if !dep.Standard && dep.ImportPath != module+name && !slices.Contains(allowed, dep.ImportPath) {
					t.Errorf("%s builds %s", name, dep.ImportPath)
				}
			}
		})
	}
}

// TestImportsGoOneWay: fence <- locks <- adapters, and fence, locks <- fencedkv.
func TestImportsGoOneWay(t *testing.T) {
	for _, p := range list(t, nil, "./...") {
		from := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(from, "cmd/") {
			continue // a command sees everything
		}
		for _, path := range p.Imports {
			to, own := strings.CutPrefix(path, module)
			if !own {
				continue
			}
			if !slices.ContainsFunc(mayImport(from), func(prefix string) bool {
				return to == prefix || strings.HasPrefix(to, prefix+"/")
			}) {
				t.Errorf("%s imports %s", from, to)
			}
		}
	}
}

func mayImport(from string) []string {
	top, _, _ := strings.Cut(from, "/")
	switch {
	case from == "fencedkv/fence":
		return nil
	case strings.HasPrefix(from, "fencedkv/internal/"):
		return []string{"fencedkv/fence", "fencedkv/internal"}
	case top == "fencedkv":
		return []string{"fencedkv/fence", "fencedkv/internal", "locks"}
	case from == "locks":
		return []string{"fencedkv/fence"}
	case top == "locks":
		return []string{"fencedkv/fence", "locks"}
	case top == "adapters":
		return []string{"fencedkv/fence", "locks", from}
	}
	return nil
}

// TestOnlyTheEngineKnowsBbolt: another engine can stand behind the same API.
func TestOnlyTheEngineKnowsBbolt(t *testing.T) {
	for _, p := range list(t, nil, "./...") {
		if slices.Contains(p.Imports, bbolt) && !strings.HasPrefix(p.ImportPath, module+"fencedkv/internal/") {
			t.Errorf("%s imports %s", p.ImportPath, bbolt)
		}
	}
}

// TestEveryPackageSaysWhatItIs and, if it is public, what to beware of.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range list(t, nil, "./...") {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
	for _, name := range []string{
		"fencedkv", "fencedkv/fence", "locks", "locks/memlock",
		"adapters/redislock", "adapters/etcdlock", "adapters/zklock",
	} {
		cmd := exec.CommandContext(t.Context(), "go", "doc", "./"+name)
		cmd.Dir = "../.."
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("go doc %s: %v", name, err)
		}
		if !strings.Contains(string(out), "# Caveats") {
			t.Errorf("the package comment of %s has no # Caveats", name)
		}
	}
}
