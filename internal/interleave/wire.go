package interleave

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// errLost is the error of a connection that the scheduler has cut.
var errLost = errors.New("interleave: the connection is lost")

// wire is the network side of a participant's connection. It sends what is written when
// an answer is read, once stop has returned.
type wire struct {
	*session
	written []byte
	answer  []byte
	lost    bool

	stop    func(statements []string) Loss // nil: everything goes through
	ended   func(committed bool)
	rewrite func(string) string
}

// connect opens a connection on a wire, over a new session or one that is there.
func connect(ctx context.Context, config *pgx.ConnConfig, name string, s *session) (*pgx.Conn, *wire, error) {
	w := &wire{session: s}
	config = config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s != nil {
			w.answer = s.hello
			return w, nil
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w.session = newSession(conn)
		return w, nil
	}
	config.TLSConfig, config.Fallbacks = nil, nil
	config.RuntimeParams["application_name"] = name
	config.RuntimeParams["deadlock_timeout"] = "100ms"
	conn, err := pgx.ConnectConfig(ctx, config)
	return conn, w, err
}

func (w *wire) Write(data []byte) (int, error) {
	switch {
	case w.lost:
		return 0, errLost
	case w.stop != nil:
		w.written = append(w.written, data...)
		return len(data), nil
	case len(w.answer) > 0: // the hello of a session that has had one
		return len(data), nil
	}
	return w.Conn.Write(data)
}

func (w *wire) Read(data []byte) (int, error) {
	switch {
	case w.lost:
		return 0, errLost
	case len(w.answer) > 0:
	case w.stop == nil:
		return w.greet(data)
	default:
		if err := w.exchange(); err != nil {
			return 0, err
		}
	}
	n := copy(data, w.answer)
	w.answer = w.answer[n:]
	return n, nil
}

// exchange stops, sends what was written and reads the whole answer.
func (w *wire) exchange() error {
	m, err := newMessage(w.written, w.rewrite)
	w.written = nil
	if err != nil {
		return err
	}
	loss := w.stop(m.statements)
	if loss == LoseMessage {
		return w.lose()
	}
	if _, err := w.Conn.Write(m.data); err != nil {
		return err
	}
	answer, committed, err := readAnswer(w.server, m.answers)
	w.ended(committed)
	if loss == LoseAnswer && err == nil {
		return w.lose()
	}
	w.answer = answer
	return err
}

// lose ends the connection.
func (w *wire) lose() error {
	w.lost = true
	return errors.Join(errLost, w.rollback())
}

// Close closes the session too, unless the connection is lost.
func (w *wire) Close() error {
	if w.lost {
		return nil
	}
	return w.Conn.Close()
}

// SetDeadline leaves a session alone whose connection is lost.
func (w *wire) SetDeadline(t time.Time) error {
	if w.lost {
		return nil
	}
	return w.Conn.SetDeadline(t)
}
