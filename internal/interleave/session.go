package interleave

import (
	"bufio"
	"bytes"
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
	hello  []byte // what the server has said from where it let a client in
}

func newSession(conn net.Conn) *session { return &session{Conn: conn, server: bufio.NewReader(conn)} }

// greet sends what a client says before it is let in, and returns the server's answer. A
// session that has let one in is not asked again.
func (s *session) greet(message []byte) ([]byte, error) {
	if s.hello != nil {
		return s.hello, nil
	}
	if _, err := s.Write(message); err != nil {
		return nil, err
	}
	var answer []byte
	for {
		part, err := readMessage(s.server)
		if err != nil {
			return answer, err
		}
		answer = append(answer, part...)
		switch {
		case bytes.Equal(part, letIn):
			s.hello = part
		case s.hello != nil:
			s.hello = append(s.hello, part...)
		}
		if s.isClients(part) {
			return answer, nil
		}
	}
}

// isClients reports whether it is the client's turn after a message of the greeting: the
// server asks for more, or is ready, or has refused.
func (s *session) isClients(part []byte) bool {
	const last = 12 // of a SASL exchange: the server goes on by itself
	return part[0] == 'Z' || part[0] == 'E' || part[0] == 'R' && s.hello == nil && part[8] != last
}

// letIn is the message that lets a client in.
var letIn = []byte{'R', 0, 0, 0, 8, 0, 0, 0, 0}

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
