// Package zksession ends ZooKeeper sessions of somebody else.
package zksession

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// patience bounds the talk with a server on the same machine.
const patience = 30 * time.Second

// Close asks the server at addr to end the session with this id, as an operator's
// tool does: it attaches to the session and closes it. The session's own client
// may attach again at the same time, which breaks the connection, perhaps before
// the request was read: look whether the session has ended, and ask again if not.
// The error says only that the server could not be asked.
func Close(addr string, id int64) error {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return fmt.Errorf("attach to session %#x: %w", id, err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))

	var connect []byte
	connect = binary.BigEndian.AppendUint32(connect, 0)          // protocol version
	connect = binary.BigEndian.AppendUint64(connect, 0)          // last zxid seen
	connect = binary.BigEndian.AppendUint32(connect, 1000)       // timeout, ms
	connect = binary.BigEndian.AppendUint64(connect, uint64(id)) // session
	connect = binary.BigEndian.AppendUint32(connect, 16)
	connect = append(connect, password(id)...)

	var closing []byte
	closing = binary.BigEndian.AppendUint32(closing, 1)        // xid
	closing = binary.BigEndian.AppendUint32(closing, 1<<32-11) // closeSession

	if _, err := conn.Write(append(frame(connect), frame(closing)...)); err != nil {
		return nil // the server has hung up, as it may
	}
	_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
	return nil
}

func frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// password is ZooKeeperServer.generatePasswd: the first bytes of java.util.Random
// with the id and a constant as its seed.
func password(id int64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(id^0xB3415C00) ^ multiplier) & mask
	var password []byte
	for range 4 {
		seed = (seed*multiplier + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}
