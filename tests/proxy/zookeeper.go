package proxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"
)

// CountZooKeeper counts the requests of a ZooKeeper client by operation.
func CountZooKeeper(t testing.TB, addr string) *Counter {
	t.Helper()
	return newCounter(t, addr, func() protocol { return &zkProtocol{} })
}

type zkProtocol struct {
	connectAsked, connectAnswered bool // by one goroutine each
}

// The operations and special xids of ZooDefs.OpCode and ClientCnxn.
var zkNames = map[int32]string{
	1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 6: "getACL", 7: "setACL",
	8: "getChildren", 9: "sync", 11: "ping", 12: "getChildren2", 13: "check", 14: "multi", 15: "create2",
	16: "reconfig", 17: "checkWatches", 18: "removeWatches", 19: "createContainer", 21: "createTTL",
	22: "multiRead", 100: "auth", 101: "setWatches", 102: "sasl", 103: "getEphemerals",
	104: "getAllChildrenNumber", 105: "setWatches2", 106: "addWatch", 107: "whoAmI", -11: "closeSession",
}

var zkSetup = map[string]bool{"ping": true, "auth": true, "sasl": true, "setWatches": true, "setWatches2": true}

// zkMaxFrame is far above jute.maxbuffer's usual 1 MiB.
const zkMaxFrame = 64 << 20

func (p *zkProtocol) request(r io.Reader) (unit, error) {
	raw, err := zkFrame(r)
	if err != nil {
		return unit{}, err
	}
	if !p.connectAsked { // the first frame has no header
		p.connectAsked = true
		return unit{raw: raw, messages: []message{{id: zkConnectID, name: "connect", setup: true}}}, nil
	}
	if len(raw) < 12 {
		return unit{}, fmt.Errorf("proxy: a ZooKeeper request of %d bytes", len(raw))
	}
	xid, op := int32(binary.BigEndian.Uint32(raw[4:])), int32(binary.BigEndian.Uint32(raw[8:]))
	name, ok := zkNames[op]
	if !ok {
		name = fmt.Sprintf("op%d", op)
	}
	return unit{raw: raw, messages: []message{{id: int64(xid), name: name, setup: zkSetup[name]}}}, nil
}

// zkConnectID is no xid.
const zkConnectID = 1 << 40

func (p *zkProtocol) reply(r io.Reader) (unit, error) {
	raw, err := zkFrame(r)
	if err != nil {
		return unit{}, err
	}
	if !p.connectAnswered {
		p.connectAnswered = true
		return unit{raw: raw}, nil
	}
	if len(raw) < 8 {
		return unit{}, fmt.Errorf("proxy: a ZooKeeper reply of %d bytes", len(raw))
	}
	xid := int32(binary.BigEndian.Uint32(raw[4:]))
	if xid < 0 { // a watch event, or the answer to a setup request
		return unit{raw: raw}, nil
	}
	return unit{raw: raw, messages: []message{{id: int64(xid)}}}, nil
}

// zkFrame reads one frame with its length.
func zkFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > zkMaxFrame {
		return nil, fmt.Errorf("proxy: a ZooKeeper frame of %d bytes", n)
	}
	raw := make([]byte, 4+n)
	copy(raw, length[:])
	_, err := io.ReadFull(r, raw[4:])
	return raw, err
}
