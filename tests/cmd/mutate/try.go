package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// try applies a patch, runs its tests and takes the patch back.
func try(ctx context.Context, root string, m Mutation) (verdict string, caught bool) {
	if out, err := git(ctx, root, "apply", m.Patch); err != nil {
		return "STALE", fail("%s does not apply: %v\n%s", m.Name, err, out)
	}
	defer func() {
		if out, err := git(context.WithoutCancel(ctx), root, "apply", "--reverse", m.Patch); err != nil {
			verdict, caught = "STALE", fail("%s cannot be taken back: %v\n%s", m.Name, err, out)
		}
	}()
	red, output, err := runTests(ctx, root, m)
	if err != nil {
		return "BROKEN", fail("%s: %v\n%s", m.Name, err, output)
	}
	for _, test := range m.Tests {
		if !red[test] {
			return "SURVIVED", fail("%s: %s stays green\n%s", m.Name, test, output)
		}
	}
	return "caught", true
}

func fail(format string, args ...any) bool {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return false
}

// runTests runs the tests that m names and returns those that failed. A test
// that did not run at all, or a package that does not build, is an error: only
// an assertion is a proof.
func runTests(ctx context.Context, root string, m Mutation) (red map[string]bool, output string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-timeout=3m", "-run", pattern(m.Tests), m.Package)
	cmd.Dir = filepath.Join(root, m.Dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, runErr := cmd.Output()

	ended := map[string]string{}
	var text strings.Builder
	timedOut := false
	for line := range bytes.Lines(stdout) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		text.WriteString(e.Output)
		timedOut = timedOut || strings.Contains(e.Output, "panic: test timed out")
		if e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			ended[e.Test] = e.Action
		}
	}
	output = text.String() + stderr.String()

	red = map[string]bool{}
	for _, test := range m.Tests {
		switch ended[test] {
		case "fail":
			red[test] = true
		case "pass":
		default:
			err = errors.Join(err, fmt.Errorf("%s did not run to its end (%q, timed out: %v)", test, ended[test], timedOut))
		}
	}
	if exit := (*exec.ExitError)(nil); runErr != nil && !errors.As(runErr, &exit) {
		err = errors.Join(err, runErr)
	}
	return red, output, err
}

// pattern returns a -run expression that covers the tests. go test matches it
// level by level, so subtests of several parents may run a little more.
func pattern(tests []string) string {
	var levels []map[string]bool
	short := false
	for i, test := range tests {
		parts := strings.Split(test, "/")
		short = short || i > 0 && len(parts) != len(levels)
		for j, part := range parts {
			if j == len(levels) {
				levels = append(levels, map[string]bool{})
			}
			levels[j][regexp.QuoteMeta(part)] = true
		}
	}
	if short {
		levels = levels[:1]
	}
	var parts []string
	for _, level := range levels {
		var names []string
		for name := range level {
			names = append(names, name)
		}
		parts = append(parts, "^("+strings.Join(names, "|")+")$")
	}
	return strings.Join(parts, "/")
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// copyTree copies what git does not ignore, as it is in the work tree.
func copyTree(ctx context.Context, from, to string) error {
	cmd := exec.CommandContext(ctx, "git", "-C", from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", from, err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted in the work tree
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
