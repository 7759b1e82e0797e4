package timeline

import "strings"

// lane is one of the four vertical lines.
type lane int

const (
	laneA lane = iota
	laneLock
	laneB
	laneStore
	lanes
)

var titles = [lanes]string{"client A", "lock", "client B", "store"}

// DefaultColumns is for an output that has no width of its own.
const DefaultColumns = 80

const (
	maxColumns = 200 // no text needs more, and an eye does not follow it
	margin     = 10  // where the first lane stands, right of the time
	right      = 3   // what the last lane leaves for its title
	minGap     = 13  // between two lanes: the shortest texts still fit
)

// layout is where things stand.
type layout struct {
	width   int // the longest line, in characters
	canvas  int // what the lanes need; more than width if they are cut off
	columns [lanes]int
}

// newLayout leaves the last column free, because some terminals go to the next
// line after it.
func newLayout(columns int) layout {
	l := layout{width: max(min(columns, maxColumns)-1, 1)}
	gap := max((l.width-margin-right)/int(lanes-1), minGap)
	for i := range l.columns {
		l.columns[i] = margin + i*gap
	}
	l.canvas = max(l.width, l.columns[laneStore]+right)
	return l
}

// arrowRoom is how long a label on an arrow can be.
func (l layout) arrowRoom(from, to lane) int {
	return max(l.columns[from]-l.columns[to], l.columns[to]-l.columns[from]) - 5
}

// noteRoom is how long a note beside a lane can be.
func (l layout) noteRoom() int { return l.columns[laneLock] - l.columns[laneA] - 3 }

// fit returns the first of the texts that has room, or the last one, cut.
func fit(room int, texts ...string) string {
	for _, text := range texts {
		if length(text) <= room {
			return text
		}
	}
	last := []rune(texts[len(texts)-1])
	if '0' <= last[0] && last[0] <= '9' {
		// Numbers of one numbering differ at their ends.
		return "…" + string(last[len(last)-room+1:])
	}
	return string(last[:room-1]) + "…"
}

// wrap breaks a text into lines, at its spaces where that can be.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case length(line)+1+length(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for runes := []rune(line); len(runes) > width; runes = []rune(line) {
			lines, line = append(lines, string(runes[:width])), string(runes[width:])
		}
	}
	return append(lines, line)
}
