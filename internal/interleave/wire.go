package interleave

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// errLost is the error of a connection that the scheduler has cut.
var errLost = errors.New("interleave: the connection is lost")

// wire is the network side of a participant's connection. It sends what is written when
// an answer is read, once stop has returned. Now and then pgx reads in another goroutine
// than the one that writes, before there is anything to be read.
type wire struct {
	*session

	mu      sync.Mutex
	changed sync.Cond // what is below
	written []byte
	answer  []byte
	over    error // not nil: the connection is closed or lost
	script  *script
}

// script is what the scheduler does with a connection. nil: it is being made.
type script struct {
	stop    func(statements []string) Loss
	ended   func(committed bool)
	rewrite func(string) string
}

// connect opens a connection on a wire, over a new session or one that is there.
func connect(ctx context.Context, config *pgx.ConnConfig, name string, s *session) (*pgx.Conn, *wire, error) {
	w := &wire{session: s}
	w.changed.L = &w.mu
	config = config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s != nil {
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

// follow makes a script hold, or none.
func (w *wire) follow(s *script) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = s
}

func (w *wire) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return 0, w.over
	}
	w.written = append(w.written, data...)
	w.changed.Broadcast()
	return len(data), nil
}

func (w *wire) Read(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.answer) == 0 {
		switch {
		case w.over != nil:
			return 0, w.over
		case len(w.written) == 0:
			w.changed.Wait()
		case w.script == nil:
			w.answer, w.over = w.greet(w.written)
			w.written = nil
		default:
			w.over = w.exchange()
		}
	}
	n := copy(data, w.answer)
	w.answer = w.answer[n:]
	return n, nil
}

// exchange stops, sends what was written and reads the whole answer.
func (w *wire) exchange() error {
	m, err := newMessage(w.written, w.script.rewrite)
	w.written = nil
	if err != nil {
		return err
	}
	loss := w.script.stop(m.statements)
	if loss == LoseMessage {
		return errors.Join(errLost, w.rollback())
	}
	if _, err := w.Conn.Write(m.data); err != nil {
		return err
	}
	answer, committed, err := readAnswer(w.server, m.answers)
	w.script.ended(committed)
	if loss == LoseAnswer && err == nil {
		return errors.Join(errLost, w.rollback())
	}
	w.answer = answer
	return err
}

// isLost reports whether the scheduler has cut the connection.
func (w *wire) isLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Is(w.over, errLost)
}

// Close closes the session too, unless the connection is lost.
func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
	if w.over != nil {
		return nil
	}
	w.over = net.ErrClosed
	return w.Conn.Close()
}

// SetDeadline does nothing: a participant may be held up for as long as it takes.
func (w *wire) SetDeadline(time.Time) error { return nil }
