package timeline

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
)

// width is the longest line, in characters.
const width = 79

// lane is one of the four vertical lines.
type lane int

const (
	laneA lane = iota
	laneLock
	laneB
	laneStore
	lanes
)

var (
	columns = [lanes]int{10, 32, 54, 76}
	titles  = [lanes]string{"client A", "lock", "client B", "store"}
)

// row is one line of text, in which each character has a style.
type row struct {
	text   [width]rune
	styles [width]*color.Color
}

func newRow() *row {
	r := &row{}
	for i := range r.text {
		r.text[i] = ' '
	}
	return r
}

// put writes s from column x on, and cuts what does not fit.
func (r *row) put(x int, s string, style *color.Color) {
	for _, c := range s {
		if x >= 0 && x < width {
			r.text[x], r.styles[x] = c, style
		}
		x++
	}
}

// center writes s with its middle at column x.
func (r *row) center(x int, s string, style *color.Color) {
	n := utf8.RuneCountInString(s)
	r.put(min(x-n/2, width-n), s, style)
}

// arrow draws a line from one lane to another with a label at its beginning.
// The lanes that it crosses stay visible.
func (r *row) arrow(from, to lane, label string, style *color.Color) {
	step, head, tail, cross := 1, '▸', "├", '┼'
	if to < from {
		step, head, tail = -1, '◂', "┤"
	}
	for x := columns[from] + step; x != columns[to]; x += step {
		r.text[x], r.styles[x] = '─', style
	}
	for l := range lanes {
		if min(from, to) < l && l < max(from, to) {
			r.text[columns[l]] = cross
		}
	}
	r.put(columns[from], tail, style)
	r.text[columns[to]-step] = head
	if to < from {
		r.put(columns[from]-2-utf8.RuneCountInString(label)-1, " "+label+" ", style)
	} else {
		r.put(columns[from]+2, " "+label+" ", style)
	}
}

// note writes beside a lane: to its right, or to the left of the last one.
func (r *row) note(l lane, s string, style *color.Color) {
	if l == laneStore {
		r.put(columns[l]-2-utf8.RuneCountInString(s), s, style)
		return
	}
	r.put(columns[l]+2, s, style)
}

// time writes the time in seconds in the left margin.
func (r *row) time(seconds float64, style *color.Color) {
	r.put(0, fmt.Sprintf("%6.2fs", seconds), style)
}

// String returns the line, styled where there are styles, without spaces at its
// end.
func (r *row) String() string {
	end := width
	for end > 0 && r.text[end-1] == ' ' {
		end--
	}
	var b strings.Builder
	for i := 0; i < end; {
		j := i
		for j < end && r.styles[j] == r.styles[i] {
			j++
		}
		part := string(r.text[i:j])
		if style := r.styles[i]; style != nil {
			part = style.Sprint(part)
		}
		b.WriteString(part)
		i = j
	}
	return b.String()
}
