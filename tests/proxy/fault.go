package proxy

import (
	"slices"
	"sync"
)

type faultKind int

const (
	dropRequest faultKind = iota
	holdRequest
	dropReply
	holdReply
	repeatReply
)

// fault waits for the next request of a name.
type fault struct {
	kind faultKind
	name string
	met  chan struct{} // closed when it has happened

	release  chan struct{} // closed when what is held may go on
	released sync.Once
}

// DropReply lets the next request of that name through to the server, loses
// the reply, and resets the connection. The channel is closed when that has
// happened: the server has executed the request and the client cannot know.
func (c *Counter) DropReply(name string) <-chan struct{} {
	return c.addFault(dropReply, name).met
}

// DropRequest resets the connection in place of the next request of that name,
// which the server never sees. The channel is closed when that has happened.
func (c *Counter) DropRequest(name string) <-chan struct{} {
	return c.addFault(dropRequest, name).met
}

// HoldRequest keeps the next request of that name, and all that comes behind it
// on the connection, until release is called or the test ends. It reaches the
// server then even if the client has hung up. The channel is closed when the
// request has come and is held.
func (c *Counter) HoldRequest(name string) (held <-chan struct{}, release func()) {
	f := c.addFault(holdRequest, name)
	return f.met, f.let
}

// HoldReply keeps the reply to the next request of that name, and all that
// comes behind it on the connection, until release is called or the test ends.
// The channel is closed when the reply has arrived and is held.
func (c *Counter) HoldReply(name string) (held <-chan struct{}, release func()) {
	f := c.addFault(holdReply, name)
	return f.met, f.let
}

// RepeatReply puts a copy of the connection's last reply to a request of that
// name before the next one, as if the client had never read it: from there on
// each reply is one too late. It is for protocols that match replies to requests
// by their order, as Redis does. The channel is closed when that has happened.
func (c *Counter) RepeatReply(name string) <-chan struct{} {
	return c.addFault(repeatReply, name).met
}

func (f *fault) let() { f.released.Do(func() { close(f.release) }) }

func (c *Counter) addFault(kind faultKind, name string) *fault {
	f := &fault{kind: kind, name: name, met: make(chan struct{}), release: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
	if kind == holdReply || kind == holdRequest {
		c.holds = append(c.holds, f)
	}
	return f
}

// takeFault is the oldest fault for a request of that name. c.mu is held.
func (c *Counter) takeFault(name string) *fault {
	i := slices.IndexFunc(c.faults, func(f *fault) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	f := c.faults[i]
	c.faults = slices.Delete(c.faults, i, i+1)
	return f
}

func (c *Counter) releaseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.holds {
		f.let()
	}
}
