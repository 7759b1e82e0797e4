package timeline

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
)

// row is one line of text, in which each character has a style.
type row struct {
	layout
	text   []rune
	styles []*color.Color
}

func newRow(l layout) *row {
	r := &row{layout: l, text: make([]rune, l.canvas), styles: make([]*color.Color, l.canvas)}
	for i := range r.text {
		r.text[i] = ' '
	}
	return r
}

// put writes s from column x on, and cuts what does not fit.
func (r *row) put(x int, s string, style *color.Color) {
	for _, c := range s {
		if x >= 0 && x < r.canvas {
			r.text[x], r.styles[x] = c, style
		}
		x++
	}
}

// center writes s with its middle at column x.
func (r *row) center(x int, s string, style *color.Color) {
	n := length(s)
	r.put(min(x-n/2, r.canvas-n), s, style)
}

// arrow draws a line from one lane to another with a label at its beginning.
// The lanes that it crosses stay visible.
func (r *row) arrow(from, to lane, label string, style *color.Color) {
	step, head, tail, cross := 1, '▸', "├", '┼'
	if to < from {
		step, head, tail = -1, '◂', "┤"
	}
	for x := r.columns[from] + step; x != r.columns[to]; x += step {
		r.text[x], r.styles[x] = '─', style
	}
	for l := range lanes {
		if min(from, to) < l && l < max(from, to) {
			r.text[r.columns[l]] = cross
		}
	}
	r.put(r.columns[from], tail, style)
	r.text[r.columns[to]-step] = head
	if to < from {
		r.put(r.columns[from]-2-length(label)-1, " "+label+" ", style)
	} else {
		r.put(r.columns[from]+2, " "+label+" ", style)
	}
}

// note writes beside a lane: to its right, or to the left of the last one.
func (r *row) note(l lane, s string, style *color.Color) {
	if l == laneStore {
		r.put(r.columns[l]-2-length(s), s, style)
		return
	}
	r.put(r.columns[l]+2, s, style)
}

// time writes the time in seconds in the left margin.
func (r *row) time(seconds float64, style *color.Color) {
	r.put(0, fmt.Sprintf("%6.2fs", seconds), style)
}

// String returns the line, styled where there are styles, without spaces at its
// end and without what is beyond the width.
func (r *row) String() string {
	end := r.width
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

func length(s string) int { return utf8.RuneCountInString(s) }
