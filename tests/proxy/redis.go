package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// CountRedis counts the commands of a Redis client (RESP2 or RESP3). Commands
// that arrive in one read are passed on together.
func CountRedis(t testing.TB, addr string) *Counter {
	t.Helper()
	return newCounter(t, addr, func() protocol { return &redisProtocol{} })
}

type redisProtocol struct {
	in, out  *tee
	asked    int64 // requests so far
	answered int64 // replies so far
}

// Commands that a client sends of its own accord to introduce a connection.
var redisSetup = map[string]bool{"HELLO": true, "AUTH": true, "SELECT": true, "CLIENT": true}

func (p *redisProtocol) request(r io.Reader) (unit, error) {
	if p.in == nil {
		p.in = newTee(r)
	}
	var messages []message
	for {
		args, err := p.in.value(nil)
		if err != nil {
			return unit{}, err
		}
		if len(args) == 0 {
			return unit{}, errors.New("proxy: a Redis command without a name")
		}
		name := strings.ToUpper(args[0])
		messages = append(messages, message{id: p.asked, name: name, setup: redisSetup[name]})
		p.asked++
		if p.in.r.Buffered() == 0 {
			return unit{raw: p.in.take(), messages: messages}, nil
		}
	}
}

func (p *redisProtocol) reply(r io.Reader) (unit, error) {
	if p.out == nil {
		p.out = newTee(r)
	}
	push, err := p.out.isPush()
	if err != nil {
		return unit{}, err
	}
	if _, err := p.out.value(nil); err != nil {
		return unit{}, err
	}
	u := unit{raw: p.out.take()}
	if !push {
		u.messages = []message{{id: p.answered}}
		p.answered++
	}
	return u, nil
}

// tee reads RESP and keeps the bytes as they were.
type tee struct {
	r   *bufio.Reader
	raw bytes.Buffer
}

func newTee(r io.Reader) *tee { return &tee{r: bufio.NewReaderSize(r, 64<<10)} }

func (t *tee) take() []byte {
	raw := bytes.Clone(t.raw.Bytes())
	t.raw.Reset()
	return raw
}

func (t *tee) isPush() (bool, error) {
	first, err := t.r.Peek(1)
	return err == nil && first[0] == '>', err
}

// value reads one RESP value and appends the strings in it to into.
func (t *tee) value(into []string) ([]string, error) {
	line, err := t.r.ReadBytes('\n')
	t.raw.Write(line)
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimRight(string(line[1:]), "\r\n")
	switch kind {
	case '$', '=', '!': // strings with a length; -1 is null
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("proxy: RESP length %q: %w", line, err)
		}
		if n < 0 {
			return into, nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(t.r, body); err != nil {
			return nil, err
		}
		t.raw.Write(body)
		return append(into, string(body[:n])), nil
	case '*', '~', '>', '%', '|': // collections with a count; -1 is null
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("proxy: RESP count %q: %w", line, err)
		}
		if kind == '%' || kind == '|' {
			n *= 2
		}
		for range max(n, 0) {
			if into, err = t.value(into); err != nil {
				return nil, err
			}
		}
		if kind == '|' { // attributes stand before the value that they describe
			return t.value(into)
		}
		return into, nil
	case '+', '-', ':', '_', ',', '#', '(':
		return append(into, text), nil
	default:
		return nil, fmt.Errorf("proxy: %q is not RESP", line)
	}
}
