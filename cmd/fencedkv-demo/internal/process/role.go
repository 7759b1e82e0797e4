package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// roleVariable tells a started program which role it has.
const roleVariable = "FENCEDKV_DEMO_ROLE"

// Role is the role in which Start has started this process, "" for none.
func Role(env func(string) string) string { return env(roleVariable) }

// Conn is the child's end: lines from and to its parent.
type Conn struct {
	in  chan []byte
	out io.Writer
}

// Parent starts to read the parent's lines. The context that it returns ends
// when the parent has closed its end, or is gone: the child then ends too.
func Parent(ctx context.Context, in io.Reader, out io.Writer) (context.Context, *Conn) {
	ctx, cancel := context.WithCancel(ctx)
	c := &Conn{in: make(chan []byte), out: out}
	go func() {
		defer cancel()
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			select {
			case c.in <- append([]byte(nil), lines.Bytes()...):
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, c
}

// Receive reads the parent's next line into v. Its error is ctx's when the
// parent has nothing more to say.
func (c *Conn) Receive(ctx context.Context, v any) error {
	select {
	case line := <-c.in:
		if err := json.Unmarshal(line, v); err != nil {
			return fmt.Errorf("line from the parent: %w", err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Send writes one line to the parent.
func (c *Conn) Send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}
