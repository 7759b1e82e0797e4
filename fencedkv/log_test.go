package fencedkv_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencedkv/fencedkv/fencedkv"
	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

func lines(buf *bytes.Buffer) []map[string]any {
	var all []map[string]any
	for line := range strings.Lines(buf.String()) {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) == nil && l["@message"] == "token refused" {
			all = append(all, l)
		}
	}
	return all
}

func TestRefusalIsOneLineWithBothHolders(t *testing.T) {
	var buf bytes.Buffer
	s := open(t, &fencedkv.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &buf, JSONFormat: true})})
	r := s.Resource("accounts/42")
	must(t, r.Put(t.Context(), token(34, "new"), b("secret key"), b("secret value")))
	wantIs(t, r.Put(t.Context(), token(33, "old"), b("secret key"), b("secret value")), fence.ErrStale)

	got := lines(&buf)
	if len(got) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(got), buf.String())
	}
	for field, want := range map[string]string{
		"resource": "accounts/42", "offered": token(33, "old").String(), "offered_holder": "old",
		"highest": token(34, "new").String(), "highest_holder": "new", "@level": "warn",
	} {
		if got[0][field] != want {
			t.Errorf("%s = %v, want %q", field, got[0][field], want)
		}
	}
	if strings.Contains(buf.String(), "secret") {
		t.Errorf("a key or a value was logged:\n%s", buf.String())
	}
}

func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		s := open(t, &fencedkv.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &buf, JSONFormat: true})})
		r := s.Resource("r")
		must(t, r.Raise(t.Context(), token(34, "new")))
		refuse := func(n int) {
			for range n {
				wantIs(t, r.Raise(t.Context(), token(33, "old")), fence.ErrStale)
			}
		}
		refuse(100)
		burst := len(lines(&buf))
		if burst == 0 || burst > 20 {
			t.Errorf("100 refusals at once gave %d lines, want a few", burst)
		}
		time.Sleep(time.Second)
		refuse(10)
		got := lines(&buf)
		if len(got) != burst+1 {
			t.Fatalf("a second later there are %d lines more, want 1", len(got)-burst)
		}
		if n := got[burst]["not_logged_before"]; n != float64(100-burst) {
			t.Errorf("not_logged_before = %v, want %d", n, 100-burst)
		}
	})
}
