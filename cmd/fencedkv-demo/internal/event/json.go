package event

import (
	"encoding/json"
	"io"
)

// JSON is a Sink that writes one JSON object a line, each with one Write.
type JSON struct{ w io.Writer }

// NewJSON returns a Sink on w.
func NewJSON(w io.Writer) *JSON { return &JSON{w} }

// Event writes e.
func (j *JSON) Event(e Event) error { return j.line(e) }

// Summary writes s.
func (j *JSON) Summary(s Summary) error { return j.line(s) }

func (j *JSON) line(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.w.Write(append(line, '\n'))
	return err
}
