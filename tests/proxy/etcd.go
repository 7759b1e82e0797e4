package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// CountEtcd counts the requests of an etcd client: one per gRPC message that
// the client sends, by the path of its stream. A unary call is one message;
// each watch that is created on an open watch stream and each keep-alive of a
// lease is one too.
func CountEtcd(t testing.TB, addr string) *Counter {
	t.Helper()
	return newCounter(t, addr, func() protocol { return &etcdProtocol{streams: make(map[uint32]*grpcStream)} })
}

type etcdProtocol struct {
	in, out *http2Reader
	streams map[uint32]*grpcStream // of the requests
}

// grpcStream finds the messages in the DATA frames of one stream: each begins
// with a flag and four bytes of length.
type grpcStream struct {
	path   string
	header []byte
	rest   int // bytes of the current message still to come
}

// messages is how many messages begin in data.
func (s *grpcStream) messages(data []byte) int {
	begun := 0
	for len(data) > 0 {
		if s.rest > 0 {
			n := min(s.rest, len(data))
			s.rest -= n
			data = data[n:]
			continue
		}
		n := min(5-len(s.header), len(data))
		s.header = append(s.header, data[:n]...)
		data = data[n:]
		if len(s.header) == 5 {
			s.rest = int(binary.BigEndian.Uint32(s.header[1:]))
			s.header = s.header[:0]
			begun++
		}
	}
	return begun
}

func (p *etcdProtocol) request(r io.Reader) (unit, error) {
	if p.in == nil {
		p.in = newHTTP2Reader(r)
		preface := make([]byte, len(http2.ClientPreface))
		_, err := io.ReadFull(r, preface)
		return unit{raw: preface}, err
	}
	frame, raw, err := p.in.next()
	if err != nil {
		return unit{}, err
	}
	u := unit{raw: raw}
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		if path := f.PseudoValue("path"); path != "" {
			p.streams[f.StreamID] = &grpcStream{path: path}
		}
	case *http2.DataFrame:
		if s := p.streams[f.StreamID]; s != nil {
			for range s.messages(f.Data()) {
				u.messages = append(u.messages, message{id: int64(f.StreamID), name: s.path})
			}
			if f.StreamEnded() {
				delete(p.streams, f.StreamID)
			}
		}
	case *http2.RSTStreamFrame:
		delete(p.streams, f.StreamID)
	}
	return u, nil
}

// reply takes the first DATA of a stream, or its end, for the reply: the
// headers that may come first say nothing about the outcome.
func (p *etcdProtocol) reply(r io.Reader) (unit, error) {
	if p.out == nil {
		p.out = newHTTP2Reader(r)
	}
	frame, raw, err := p.out.next()
	if err != nil {
		return unit{}, err
	}
	u := unit{raw: raw}
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		if f.StreamEnded() {
			u.messages = []message{{id: int64(f.StreamID)}}
		}
	case *http2.DataFrame:
		u.messages = []message{{id: int64(f.StreamID)}}
	case *http2.RSTStreamFrame:
		u.messages = []message{{id: int64(f.StreamID)}}
	}
	return u, nil
}

// http2Reader reads frames and keeps the bytes as they were.
type http2Reader struct {
	framer *http2.Framer
	raw    bytes.Buffer
}

func newHTTP2Reader(r io.Reader) *http2Reader {
	h := &http2Reader{}
	h.framer = http2.NewFramer(io.Discard, io.TeeReader(r, &h.raw))
	h.framer.SetMaxReadFrameSize(1<<24 - 1)
	decoder := hpack.NewDecoder(4096, nil)
	// The peers may agree on a larger table than the default.
	decoder.SetAllowedMaxDynamicTableSize(1 << 20)
	h.framer.ReadMetaHeaders = decoder
	return h
}

func (h *http2Reader) next() (http2.Frame, []byte, error) {
	frame, err := h.framer.ReadFrame()
	if err != nil {
		return nil, nil, err
	}
	raw := bytes.Clone(h.raw.Bytes())
	h.raw.Reset()
	return frame, raw, nil
}
