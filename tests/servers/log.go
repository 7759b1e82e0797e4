package servers

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

const tailLines = 40

// tail is the end of a log file, for the report of a failure.
func tail(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	if cut := len(lines) - tailLines; cut > 0 {
		lines = append([]string{fmt.Sprintf("(%d earlier lines)", cut)}, lines[cut:]...)
	}
	return strings.Join(lines, "\n")
}
