package interleave

import (
	"context"
	"errors"
	"fmt"
)

// ErrOpen is the error of a call that left its transaction open.
var ErrOpen = errors.New("interleave: a call has returned and its transaction is open")

// Play lets calls run, each as a participant, in the order that choose decides on. Some
// cuts of connections are among the choices.
func (s *Stage) Play(ctx context.Context, calls []Call, cuts int, choose Choose) (*Record, error) {
	if err := s.enter(ctx, len(calls)); err != nil {
		return nil, err
	}
	p := &play{stage: s, parties: s.parties[:len(calls)], cuts: cuts, events: make(chan event)}
	for i, call := range calls {
		p.start(ctx, i, call)
	}
	err := p.run(ctx, choose)
	p.abandon()
	if err == nil {
		err = p.checkClosed()
	}
	return &p.record, err
}

// play is a schedule that is being played.
type play struct {
	stage   *Stage
	parties []*party
	cuts    int // how many connections may still be lost
	events  chan event
	record  Record
}

// event is a participant's news: it has stopped before statements, or is done.
type event struct {
	who        int
	done       bool
	statements []string
}

func (p *play) start(ctx context.Context, i int, call Call) {
	party := p.parties[i]
	party.state, party.goOn, party.exchange = moving, make(chan Loss), &Exchange{}
	rewrite := p.stage.Rewrite
	if rewrite == nil {
		rewrite = func(sql string) string { return sql }
	}
	party.wire.follow(&script{
		rewrite: rewrite,
		stop: func(statements []string) Loss {
			p.events <- event{who: i, statements: statements}
			return <-party.goOn
		},
		ended: func(committed bool) { party.exchange.Committed = committed },
	})
	go func() {
		call(ctx, party.conn)
		p.events <- event{who: i, done: true}
	}()
}

// run lets one participant after the other go on until all are done.
func (p *play) run(ctx context.Context, choose Choose) error {
	for {
		if err := p.awaitAll(ctx); err != nil {
			return err
		}
		possible := p.possible()
		if len(possible) == 0 {
			if p.count(waiting) == 0 {
				return nil
			}
			if err := p.await(); err != nil { // the server ends a deadlock
				return err
			}
			continue
		}
		action, err := choose(p.record.Schedule, possible)
		if err != nil {
			return err
		}
		p.record.Schedule = append(p.record.Schedule, action)
		p.record.Possible = append(p.record.Possible, possible)
		p.let(action)
	}
}

// possible are the actions that can be next.
func (p *play) possible() []Action {
	var actions []Action
	for i, party := range p.parties {
		if party.state != stopped {
			continue
		}
		actions = append(actions, Action{Who: i})
		if p.cuts > 0 {
			actions = append(actions, Action{i, LoseMessage}, Action{i, LoseAnswer})
		}
	}
	return actions
}

// let lets a participant go on.
func (p *play) let(action Action) {
	party := p.parties[action.Who]
	party.exchange = &Exchange{Action: action, Statements: party.next}
	p.record.Exchanges = append(p.record.Exchanges, party.exchange)
	party.state = moving
	if action.Loss != LoseNothing {
		p.cuts--
	}
	party.goOn <- action.Loss
}

// note takes in an event.
func (p *play) note(e event) {
	party := p.parties[e.who]
	party.state, party.next = stopped, e.statements
	if e.done {
		party.state = done
	}
}

func (p *play) count(s state) int {
	n := 0
	for _, party := range p.parties {
		if party.state == s {
			n++
		}
	}
	return n
}

// abandon ends the participants that are not done, after an error.
func (p *play) abandon() {
	for _, party := range p.parties {
		if party.state != done {
			_ = party.wire.Conn.Close()
		}
	}
	for p.count(done) < len(p.parties) {
		for _, party := range p.parties {
			if party.state == stopped {
				party.state = moving
				party.goOn <- LoseMessage
			}
		}
		if p.await() != nil {
			return
		}
	}
	for _, party := range p.parties {
		party.wire.follow(nil)
	}
}

// checkClosed reports a transaction that is left open.
func (p *play) checkClosed() error {
	for i, party := range p.parties {
		if conn := party.conn.PgConn(); !conn.IsClosed() && conn.TxStatus() != 'I' {
			return fmt.Errorf("%w: %s", ErrOpen, Action{Who: i})
		}
	}
	return nil
}
