package timeline

import "github.com/fatih/color"

// palette is what the parts look like. Without colour nothing is styled.
type palette struct {
	a, b, store, lock *color.Color // the lanes and what starts from them
	good, bad         *color.Color
	faint, strong     *color.Color
}

func newPalette(colour bool) *palette {
	style := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		if colour {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	return &palette{
		a:      style(color.FgCyan),
		b:      style(color.FgMagenta),
		lock:   style(color.FgYellow),
		store:  style(color.FgHiBlue),
		good:   style(color.FgGreen, color.Bold),
		bad:    style(color.FgRed, color.Bold),
		faint:  style(color.Faint),
		strong: style(color.Bold),
	}
}

func (p *palette) lane(l lane) *color.Color {
	return [lanes]*color.Color{p.a, p.lock, p.b, p.store}[l]
}
