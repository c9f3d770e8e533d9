package interleave

import (
	"bufio"
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5"
)

// errLost is the error of a connection that the scheduler has cut.
var errLost = errors.New("interleave: the connection is lost")

// wire is a participant's connection. It sends what is written when an answer is read,
// once stop has returned.
type wire struct {
	net.Conn
	server  *bufio.Reader
	written []byte
	answer  []byte

	stop    func(statements []string) Loss // nil: everything goes through
	ended   func(committed bool)
	rewrite func(string) string
}

// connect opens a connection whose network side is a wire. It runs each statement in one
// exchange: nothing is prepared before.
func connect(ctx context.Context, config *pgx.ConnConfig, name string) (*pgx.Conn, *wire, error) {
	var w *wire
	config = config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w = &wire{Conn: conn, server: bufio.NewReader(conn)}
		return w, nil
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = name
	config.RuntimeParams["deadlock_timeout"] = "100ms"
	conn, err := pgx.ConnectConfig(ctx, config)
	return conn, w, err
}

func (w *wire) Write(data []byte) (int, error) {
	if w.stop == nil {
		return w.Conn.Write(data)
	}
	w.written = append(w.written, data...)
	return len(data), nil
}

func (w *wire) Read(data []byte) (int, error) {
	if w.stop == nil {
		return w.server.Read(data)
	}
	if len(w.answer) == 0 {
		if err := w.exchange(); err != nil {
			return 0, errors.Join(err, w.Conn.Close())
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
		return errLost
	}
	if _, err := w.Conn.Write(m.data); err != nil {
		return err
	}
	answer, committed, err := readAnswer(w.server, m.answers)
	w.ended(committed)
	if loss == LoseAnswer && err == nil {
		return errLost
	}
	w.answer = answer
	return err
}
