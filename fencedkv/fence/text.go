package fence

import (
	"fmt"
	"strconv"
	"strings"
)

// The text form of a token:
//
//	34   34@lineage   34@lineage~holder   34~holder
//
// Each part is percent-encoded by escape. There is exactly one text for each
// token, so text can be compared, logged and used as a key.

// String returns the text form, such as "34@lineage~holder". Bytes of lineage
// and holder outside [A-Za-z0-9._:/-] are percent-encoded with upper-case hex.
func (t Token) String() string {
	var b strings.Builder
	b.WriteString(strconv.FormatUint(t.Seq, 10))
	if t.Lineage != "" {
		b.WriteByte('@')
		escape(&b, t.Lineage)
	}
	if t.Holder != "" {
		b.WriteByte('~')
		escape(&b, t.Holder)
	}
	return b.String()
}

// Parse reads the text form of a token. It accepts exactly what String writes
// for a valid token: no sign, no leading zero, no space, no other encoding.
//
// Its errors are over ErrNoToken (the text is empty or its number is 0) or
// ErrBadToken.
func Parse(s string) (Token, error) {
	if s == "" {
		return Token{}, fmt.Errorf("%w: the text is empty", ErrNoToken)
	}
	rest, holder, hasHolder := strings.Cut(s, "~")
	number, lineage, hasLineage := strings.Cut(rest, "@")
	if hasLineage && lineage == "" || hasHolder && holder == "" {
		return Token{}, badText(s, "a part after @ or ~ is empty")
	}

	var t Token
	var err error
	if t.Seq, err = strconv.ParseUint(number, 10, 64); err != nil {
		return Token{}, badText(s, "its number is not a decimal of at most 64 bits")
	}
	if t.Lineage, err = unescape(lineage); err != nil {
		return Token{}, badText(s, err.Error())
	}
	if t.Holder, err = unescape(holder); err != nil {
		return Token{}, badText(s, err.Error())
	}
	// ParseUint takes leading zeros, which would give one token two texts.
	if t.String() != s {
		return Token{}, badText(s, "it is not in canonical form, which is "+strconv.Quote(shorten(t.String(), mostText)))
	}
	if err := t.Validate(); err != nil {
		return Token{}, fmt.Errorf("%w in text %q", err, shorten(s, mostText))
	}
	return t, nil
}

// MarshalText returns what String returns, and empty text for the zero Token.
// JSON therefore carries a token as a string, exact at every number. It never
// fails, so that a refused token can be written to a log whatever is wrong with
// it; reading it back is strict.
func (t Token) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return []byte{}, nil
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what MarshalText writes. Empty text is the zero Token.
func (t *Token) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = Token{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

const upperHex = "0123456789ABCDEF"

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '_' || c == ':' || c == '/' || c == '-'
}

func escape(b *strings.Builder, s string) {
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+3 > len(s) {
			return "", fmt.Errorf("it ends inside a percent-encoding")
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q is not a percent-encoding", s[i:i+3])
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

func badText(s, why string) error {
	return fmt.Errorf("%w %q: %s", ErrBadToken, shorten(s, mostText), why)
}

// mostText is how many bytes of an unreadable text an error shows.
const mostText = 120

// shorten keeps an error readable when somebody offers a book as a token.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
