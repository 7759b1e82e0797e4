package zklock_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fencedkv/fencedkv/tests/internal/bounded"
)

// closeSession ends a session of somebody else, as an operator's tool does: it
// attaches to it and closes it. The session's own client then attaches again,
// which breaks our connection, perhaps before the request was read.
func (s *site) closeSession(t testing.TB, e entry) {
	t.Helper()
	bounded.Eventually(t, "the end of the session", func() bool {
		s.attachAndClose(t, e.owner)
		there, _, err := s.direct.Exists(e.path)
		return err == nil && !there
	})
}

func (s *site) attachAndClose(t testing.TB, id int64) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(bounded.Patience))

	var connect []byte
	connect = binary.BigEndian.AppendUint32(connect, 0)          // protocol version
	connect = binary.BigEndian.AppendUint64(connect, 0)          // last zxid seen
	connect = binary.BigEndian.AppendUint32(connect, 1000)       // timeout, ms
	connect = binary.BigEndian.AppendUint64(connect, uint64(id)) // session
	connect = binary.BigEndian.AppendUint32(connect, 16)
	connect = append(connect, sessionPassword(id)...)

	var closing []byte
	closing = binary.BigEndian.AppendUint32(closing, 1)        // xid
	closing = binary.BigEndian.AppendUint32(closing, 1<<32-11) // closeSession

	if _, err := conn.Write(append(frame(connect), frame(closing)...)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
}

func frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// sessionPassword is ZooKeeperServer.generatePasswd: the first bytes of
// java.util.Random with the id and a constant as its seed.
func sessionPassword(id int64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(id^0xB3415C00) ^ multiplier) & mask
	var password []byte
	for range 4 {
		seed = (seed*multiplier + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}
