package interleave

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgproto3"
)

// session is the server's side of a connection. It outlives the connection: where that is
// lost, what it did is rolled back, as the server does when a client is gone, and the next
// connection has the same session. A new one would have to fill its caches, which takes
// longer than a schedule.
type session struct {
	net.Conn
	server *bufio.Reader
	hello  []byte // what the server says at the start
}

func newSession(conn net.Conn) *session { return &session{Conn: conn, server: bufio.NewReader(conn)} }

// greet reads what the server says at the start, and keeps it from where the client is
// let in.
func (s *session) greet(data []byte) (int, error) {
	n, err := s.server.Read(data)
	s.hello = append(s.hello, data[:n]...)
	return n, err
}

// letIn is the message that lets a client in.
var letIn = []byte{'R', 0, 0, 0, 8, 0, 0, 0, 0}

// greeted ends the greeting.
func (s *session) greeted() error {
	for rest := s.hello; len(rest) >= header; rest = rest[1+binary.BigEndian.Uint32(rest[1:]):] {
		if bytes.HasPrefix(rest, letIn) {
			s.hello = rest
			return nil
		}
	}
	return fmt.Errorf("interleave: the server has not let the client in: %q", s.hello)
}

// rollback ends the session's transaction, if there is one.
func (s *session) rollback() error {
	data, err := (&pgproto3.Query{String: "rollback"}).Encode(nil)
	if err != nil {
		return err
	}
	if _, err := s.Write(data); err != nil {
		return err
	}
	_, _, err = readAnswer(s.server, 1)
	return err
}
