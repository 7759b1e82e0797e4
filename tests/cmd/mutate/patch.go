package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutation is one patch and the tests that must notice it.
type Mutation struct {
	Name    string // the file's name
	Patch   string // the file's absolute path
	Promise string
	Dir     string // the module's folder
	Package string
	Tests   []string
}

func load(dir, only string) ([]Mutation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []Mutation
	for _, path := range paths {
		if !strings.Contains(filepath.Base(path), only) {
			continue
		}
		m, err := read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no patch in %s has %q in its name", dir, only)
	}
	return all, nil
}

func read(path string) (Mutation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Mutation{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return Mutation{}, err
	}
	m := Mutation{Name: filepath.Base(path), Patch: path, Dir: "."}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "--- ") {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "Promise":
			m.Promise = value
		case "Dir":
			m.Dir = value
		case "Package":
			m.Package = value
		case "Test":
			m.Tests = append(m.Tests, value)
		}
	}
	if m.Promise == "" || m.Package == "" || len(m.Tests) == 0 {
		return m, fmt.Errorf("%s: the header needs Promise, Package and Test lines", path)
	}
	return m, nil
}

// byPackage joins the tests of all mutations of one package, so that the
// unbroken tree is tested once for each.
func byPackage(all []Mutation) []Mutation {
	var groups []Mutation
	for _, m := range all {
		i := slices.IndexFunc(groups, func(g Mutation) bool { return g.Dir == m.Dir && g.Package == m.Package })
		if i < 0 {
			groups = append(groups, Mutation{Dir: m.Dir, Package: m.Package})
			i = len(groups) - 1
		}
		for _, test := range m.Tests {
			if !slices.Contains(groups[i].Tests, test) {
				groups[i].Tests = append(groups[i].Tests, test)
			}
		}
	}
	return groups
}
