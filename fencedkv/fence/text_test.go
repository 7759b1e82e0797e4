package fence_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func TestStringIsTheDocumentedForm(t *testing.T) {
	tests := []struct {
		token fence.Token
		want  string
	}{
		{fence.Number(34), "34"},
		{fence.Token{Seq: 34, Lineage: "lineage"}, "34@lineage"},
		{fence.Token{Seq: 34, Lineage: "lineage", Holder: "holder"}, "34@lineage~holder"},
		{fence.Token{Seq: 34, Holder: "holder"}, "34~holder"},
		{fence.Token{Seq: 1, Lineage: "zkseq:/locks/a@4f.17"}, "1@zkseq:/locks/a%404f.17"},
		{fence.Token{Seq: 1, Lineage: "AZaz09._:/-"}, "1@AZaz09._:/-"},
		{fence.Token{Seq: 1, Holder: "a~b%c d\x00\xff\né"}, "1~a%7Eb%25c%20d%00%FF%0A%C3%A9"},
		{fence.Number(1e14 + 1), "100000000000001"},
		{fence.Number(1<<53 + 1), "9007199254740993"},
		{fence.Number(math.MaxUint64), "18446744073709551615"},
	}
	for _, tt := range tests {
		if got := tt.token.String(); got != tt.want {
			t.Errorf("String of %#v = %q, want %q", tt.token, got, tt.want)
		}
		if got, err := fence.Parse(tt.want); got != tt.token || err != nil {
			t.Errorf("Parse(%q) = %#v, %v; want %#v", tt.want, got, err, tt.token)
		}
	}
}

func TestParseAcceptsNothingThatStringWouldNotWrite(t *testing.T) {
	for text, want := range map[string]error{
		"":                                fence.ErrNoToken,
		"0":                               fence.ErrNoToken,
		"0@lineage~holder":                fence.ErrNoToken,
		"00":                              fence.ErrBadToken,
		"034":                             fence.ErrBadToken,
		"+34":                             fence.ErrBadToken,
		"-34":                             fence.ErrBadToken,
		" 34":                             fence.ErrBadToken,
		"34 ":                             fence.ErrBadToken,
		"34\n":                            fence.ErrBadToken,
		"3_4":                             fence.ErrBadToken,
		"0x22":                            fence.ErrBadToken,
		"1e14":                            fence.ErrBadToken,
		"34.0":                            fence.ErrBadToken,
		"٣٤":                              fence.ErrBadToken,
		"18446744073709551616":            fence.ErrBadToken,
		"@lineage":                        fence.ErrBadToken,
		"~holder":                         fence.ErrBadToken,
		"34@":                             fence.ErrBadToken,
		"34~":                             fence.ErrBadToken,
		"34@~h":                           fence.ErrBadToken,
		"34@l~":                           fence.ErrBadToken,
		"34@l@m":                          fence.ErrBadToken,
		"34~h~i":                          fence.ErrBadToken,
		"34~h@l":                          fence.ErrBadToken,
		"34@a b":                          fence.ErrBadToken,
		"34@é":                            fence.ErrBadToken,
		"34@%":                            fence.ErrBadToken,
		"34@%4":                           fence.ErrBadToken,
		"34@%zz":                          fence.ErrBadToken,
		"34@%7e":                          fence.ErrBadToken, // lower-case hex
		"34@%41":                          fence.ErrBadToken, // encodes what needs no encoding
		"34@%+1":                          fence.ErrBadToken,
		"34@%\n1":                         fence.ErrBadToken,
		"1@" + strings.Repeat("l", 257):   fence.ErrBadToken,
		"1~" + strings.Repeat("h", 129):   fence.ErrBadToken,
		"1@" + strings.Repeat("%00", 257): fence.ErrBadToken,
		"1" + strings.Repeat("0", 1<<16) + "~long": fence.ErrBadToken,
		"034@" + strings.Repeat("l", 1<<16):        fence.ErrBadToken,
	} {
		got, err := fence.Parse(text)
		if !errors.Is(err, want) || !got.IsZero() {
			t.Errorf("Parse(%.40q) = %v, %v; want the zero Token and %v", text, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%.40q): the error breaks the line: %v", text, err)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("Parse(%.40q): the error has %d bytes, want a short one", text, len(err.Error()))
		}
	}
}

func TestLimitsCountBytesBeforeEncoding(t *testing.T) {
	token := fence.Token{Seq: 1, Lineage: strings.Repeat("\x00", 256), Holder: strings.Repeat("\xff", 128)}
	if got, err := fence.Parse(token.String()); got != token || err != nil {
		t.Errorf("Parse of the longest token: %v; want the same token", err)
	}
}

// FuzzParseAndStringAreInverse: whatever Parse accepts, String writes back.
func FuzzParseAndStringAreInverse(f *testing.F) {
	for _, s := range []string{"34", "34@l~h", "34~h", "1@%00", "0", "", "01", "34@%7e", "18446744073709551615"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := fence.Parse(s)
		if err != nil {
			if !errors.Is(err, fence.ErrBadToken) && !errors.Is(err, fence.ErrNoToken) {
				t.Fatalf("Parse(%q): %v, which is over no sentinel", s, err)
			}
			return
		}
		if got := token.String(); got != s {
			t.Fatalf("Parse(%q) accepts what String would not write: it writes %q", s, got)
		}
		if err := token.Validate(); err != nil {
			t.Fatalf("Parse(%q) returns a token that is not valid: %v", s, err)
		}
	})
}

// FuzzStringAndParseAreInverse: whatever valid token there is, its text is read
// back, and the text of an invalid one is refused.
func FuzzStringAndParseAreInverse(f *testing.F) {
	f.Add(uint64(34), "lineage", "holder")
	f.Add(uint64(0), "", "")
	f.Add(uint64(math.MaxUint64), "a@b~c%d", "\x00\xff")
	f.Fuzz(func(t *testing.T, seq uint64, lineage, holder string) {
		token := fence.Token{Seq: seq, Lineage: lineage, Holder: holder}
		got, err := fence.Parse(token.String())
		if token.Validate() != nil {
			if err == nil {
				t.Fatalf("Parse(%q) accepts an invalid token", token)
			}
			return
		}
		if got != token || err != nil {
			t.Fatalf("Parse(%q) = %#v, %v; want %#v", token, got, err, token)
		}
	})
}

func TestJSONIsExactAtEveryNumber(t *testing.T) {
	for _, seq := range []uint64{1, 1e14 + 1, 1<<53 - 1, 1<<53 + 1, math.MaxInt64, math.MaxUint64} {
		want := fence.Token{Seq: seq, Lineage: "l", Holder: "h"}
		data, err := json.Marshal(want)
		if err != nil || data[0] != '"' {
			t.Fatalf("Marshal(%v) = %s, %v; want a JSON string", want, data, err)
		}
		// Through a reader that knows nothing of tokens, as a log pipeline is.
		var loose any
		if err := json.Unmarshal(data, &loose); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(loose)
		if err != nil {
			t.Fatal(err)
		}
		var got fence.Token
		if err := json.Unmarshal(again, &got); err != nil || got != want {
			t.Errorf("%s became %v, %v; want %v", data, got, err, want)
		}
	}
}

func TestJSONOfTokensThatAreNone(t *testing.T) {
	if data, err := json.Marshal(fence.Token{}); string(data) != `""` || err != nil {
		t.Errorf("Marshal of the zero Token = %s, %v; want an empty string", data, err)
	}
	got := fence.Number(34) // what was there before
	if err := json.Unmarshal([]byte(`""`), &got); err != nil || !got.IsZero() {
		t.Errorf("Unmarshal of the empty string = %v, %v; want the zero Token", got, err)
	}
	if err := json.Unmarshal([]byte(`"034"`), &got); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("Unmarshal of 034: %v, want ErrBadToken", err)
	}
	if err := json.Unmarshal([]byte(`34`), &got); err == nil {
		t.Error("Unmarshal of a JSON number succeeded; numbers are not exact in JSON")
	}
	data, err := json.Marshal(fence.Token{Lineage: "l"})
	if err != nil || string(data) != `"0@l"` {
		t.Errorf("Marshal of a lineage without a number = %s, %v; want text for the log", data, err)
	}
	if err := json.Unmarshal(data, &got); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("Unmarshal of a lineage without a number: %v, want ErrNoToken", err)
	}
}

func TestMarkKeepsItsTimeThroughJSON(t *testing.T) {
	for _, want := range []fence.Mark{{}, mark(fence.Token{Seq: 1<<53 + 1, Lineage: "l", Holder: "h"})} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got fence.Mark
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Errorf("%v became %s and then %v, %v", want, data, got, err)
		}
	}
	if data, err := json.Marshal(fence.Mark{Token: fence.Number(34)}); string(data) != `{"token":"34"}` || err != nil {
		t.Errorf("a Mark without a time became %s, %v", data, err)
	}
	var m fence.Mark
	if err := json.Unmarshal([]byte(`{"token":"x"}`), &m); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("Unmarshal of a bad mark: %v, want ErrBadToken", err)
	}
}

func TestMarkPrintsTokenAndTime(t *testing.T) {
	if got := (fence.Mark{}).String(); got != "none" {
		t.Errorf("the zero Mark prints %q, want none", got)
	}
	m := fence.Mark{Token: fence.Number(34), RaisedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	if got, want := m.String(), "34 at 2026-01-02T02:04:05Z"; got != want {
		t.Errorf("the Mark prints %q, want %q", got, want)
	}
}

func TestContextCarriesTheToken(t *testing.T) {
	if _, ok := fence.FromContext(t.Context()); ok {
		t.Error("a fresh context carries a token")
	}
	want := fence.Number(34)
	if got, ok := fence.FromContext(fence.NewContext(t.Context(), want)); got != want || !ok {
		t.Errorf("FromContext = %v, %v; want %v", got, ok, want)
	}
}
