package interleave

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// header is the length of a message's type and length.
const header = 5

// message is what a client sends before it waits for an answer.
type message struct {
	data       []byte
	statements []string // their names
	answers    int      // how often the server says that it is ready again
}

// newMessage reads what a client has written, and puts rewritten statements into it.
func newMessage(data []byte, rewrite func(string) string) (message, error) {
	var m message
	for len(data) > 0 {
		size := len(data)
		if size >= header {
			size = 1 + int(binary.BigEndian.Uint32(data[1:]))
		}
		if size < header || size > len(data) {
			return m, errors.New("interleave: a message was written in part")
		}
		part, err := m.add(data[:size], rewrite)
		if err != nil {
			return m, err
		}
		m.data, data = append(m.data, part...), data[size:]
	}
	if m.answers == 0 {
		return m, errors.New("interleave: the client waits for an answer that it did not ask for")
	}
	return m, nil
}

// add notes a part of the message, and returns what to send instead.
func (m *message) add(part []byte, rewrite func(string) string) ([]byte, error) {
	switch part[0] {
	case 'P':
		var parse pgproto3.Parse
		if err := parse.Decode(part[header:]); err != nil {
			return nil, err
		}
		m.statements = append(m.statements, name(parse.Query))
		parse.Query = rewrite(parse.Query)
		return parse.Encode(nil)
	case 'Q':
		var query pgproto3.Query
		if err := query.Decode(part[header:]); err != nil {
			return nil, err
		}
		m.answers++
		m.statements = append(m.statements, name(query.String))
		query.String = rewrite(query.String)
		return query.Encode(nil)
	case 'S':
		m.answers++
	}
	return part, nil
}

// namePattern is the name in a statement's first line.
var namePattern = regexp.MustCompile(`^(?:explain )?-- ([a-z_.]+)`)

// name is a statement's, or its first words.
func name(sql string) string {
	if match := namePattern.FindStringSubmatch(sql); match != nil {
		return match[1]
	}
	words := strings.Fields(sql)
	return strings.Join(words[:min(len(words), 2)], " ")
}

// readAnswer reads until the server was ready as often as it must be. committed says
// that it has committed a transaction.
func readAnswer(server io.Reader, answers int) (answer []byte, committed bool, err error) {
	for answers > 0 {
		part, err := readMessage(server)
		if err != nil {
			return answer, committed, err
		}
		switch {
		case part[0] == 'C' && string(part[header:]) == "COMMIT\x00":
			committed = true
		case part[0] == 'Z':
			answers--
		}
		answer = append(answer, part...)
	}
	return answer, committed, nil
}

// readMessage reads one message of the server's.
func readMessage(server io.Reader) ([]byte, error) {
	var head [header]byte
	if _, err := io.ReadFull(server, head[:]); err != nil {
		return nil, fmt.Errorf("interleave: read the answer: %w", err)
	}
	message := make([]byte, 1+int(binary.BigEndian.Uint32(head[1:])))
	copy(message, head[:])
	if _, err := io.ReadFull(server, message[header:]); err != nil {
		return nil, fmt.Errorf("interleave: read the answer: %w", err)
	}
	return message, nil
}
