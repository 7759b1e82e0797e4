package fence

import (
	"encoding/json"
	"fmt"
	"time"
)

// Mark is the high-water mark of a resource: the highest token that it has
// admitted, and when. The zero Mark is "nothing admitted yet".
type Mark struct {
	Token

	// RaisedAt is the guard's wall clock when the token first arrived. It
	// informs people; no decision uses it.
	RaisedAt time.Time
}

// String returns the token's text form and, if it is known, the time of arrival;
// "none" for the zero Mark.
func (m Mark) String() string {
	if m.IsZero() {
		return "none"
	}
	if m.RaisedAt.IsZero() {
		return m.Token.String()
	}
	return m.Token.String() + " at " + m.RaisedAt.UTC().Format(time.RFC3339Nano)
}

// markJSON exists because Mark would otherwise inherit Token's text form and
// lose the time.
type markJSON struct {
	Token    Token     `json:"token"`
	RaisedAt time.Time `json:"raised_at,omitzero"`
}

// MarshalJSON returns {"token":"34@lineage~holder","raised_at":"..."}.
func (m Mark) MarshalJSON() ([]byte, error) {
	return json.Marshal(markJSON{m.Token, m.RaisedAt})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Mark) UnmarshalJSON(data []byte) error {
	var j markJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("fence: mark: %w", err)
	}
	*m = Mark{Token: j.Token, RaisedAt: j.RaisedAt}
	return nil
}
