package main

import "io"

// output is standard output. It knows when nobody reads it any more.
type output struct {
	w    io.Writer
	gone bool // the reader has closed its end: "| head -1"
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.gone = o.gone || readerGone(err)
	return n, err
}
