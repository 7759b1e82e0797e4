package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// testID names a test or subtest.
type testID struct{ pkg, test string }

func (id testID) String() string { return id.pkg + " " + id.test }

// allowList has the reason of every skip that is allowed.
type allowList map[testID]string

func readAllowList(r io.Reader) (allowList, error) {
	list := allowList{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("line %d: want package, test and reason, got %q", n, line)
		}
		id := testID{fields[0], fields[1]}
		if _, twice := list[id]; twice {
			return nil, fmt.Errorf("line %d: %v is listed twice", n, id)
		}
		list[id] = strings.Join(fields[2:], " ")
	}
	return list, lines.Err()
}
