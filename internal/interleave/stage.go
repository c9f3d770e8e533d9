package interleave

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Call is what a participant does with its connection.
type Call func(ctx context.Context, conn *pgx.Conn)

// Exchange is one exchange of a participant with the server.
type Exchange struct {
	Action
	Statements []string
	Waited     bool // for a lock
	Committed  bool // the server has committed a transaction in it
}

// Record is what happened in a schedule.
type Record struct {
	Schedule  Schedule
	Possible  [][]Action  // what was possible before each of the schedule's actions
	Exchanges []*Exchange // in the schedule's order
}

// Stage has the connections of the participants, which it keeps from one schedule to
// the next as long as they are not lost.
type Stage struct {
	// Rewrite changes the text of each statement of the participants. nil: none.
	Rewrite func(sql string) string

	config   *pgx.ConnConfig
	observer observer
	parties  []*party
}

// party is a participant.
type party struct {
	conn *pgx.Conn
	wire *wire
	pid  uint32

	state    state
	goOn     chan Loss
	exchange *Exchange // the last one that it was let go on with
	next     []string  // the statements that it has stopped before
}

// state is what a participant does.
type state int

const (
	moving  state = iota // it is let go on, or has not stopped yet
	stopped              // it is about to talk to the server
	waiting              // its statement waits for a lock
	done
)

// Open makes a stage on a database. The connections have a copy of the configuration. Its
// DefaultQueryExecMode should be one that keeps no prepared statements from one schedule to
// the next: where some are prepared already, a call has fewer exchanges.
func Open(ctx context.Context, config *pgx.ConnConfig) (*Stage, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Stage{config: config, observer: observer{conn}}, nil
}

// Close closes the connections.
func (s *Stage) Close(ctx context.Context) error {
	errs := []error{s.observer.conn.Close(ctx)}
	for _, p := range s.parties {
		if p.conn != nil {
			errs = append(errs, p.conn.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// enter makes as many participants as there are calls, each with a connection.
func (s *Stage) enter(ctx context.Context, n int) error {
	for len(s.parties) < n {
		s.parties = append(s.parties, &party{})
	}
	for i, p := range s.parties[:n] {
		if p.conn != nil && !p.conn.IsClosed() {
			continue
		}
		var old *session
		if p.wire != nil && p.wire.isLost() {
			old = p.wire.session
		}
		var err error
		if p.conn, p.wire, err = connect(ctx, s.config, string(rune('a'+i)), old); err != nil {
			return fmt.Errorf("interleave: connect: %w", err)
		}
		p.pid = p.conn.PgConn().PID()
	}
	return nil
}
