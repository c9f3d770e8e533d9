package interleave

import (
	"context"
	"time"
)

// look is how long the scheduler waits for a participant before it asks the server
// whether that waits for a lock.
const look = time.Millisecond

// awaitAll returns when each participant has stopped, is done, or waits for a lock that
// only another one can let go.
func (p *play) awaitAll(ctx context.Context) error {
	for _, party := range p.parties {
		if party.state == waiting { // the last exchange may have let it go
			party.state = moving
		}
	}
	began := time.Now()
	for p.count(moving) > 0 {
		if p.news() {
			continue
		}
		if all, err := p.allWait(ctx); all || err != nil {
			return err
		}
		if time.Since(began) > patience {
			return ErrStuck
		}
	}
	return nil
}

// news waits a moment for an event, and reports whether there was one.
func (p *play) news() bool {
	wait := time.NewTimer(look)
	defer wait.Stop()
	select {
	case e := <-p.events:
		p.note(e)
		return true
	case <-wait.C:
		return false
	}
}

// allWait reports whether all participants that move wait for locks, and sets them aside
// if so. It looks twice: one that was seen to wait may have been let go by another one
// before that was looked at.
func (p *play) allWait(ctx context.Context) (bool, error) {
	var moves []*party
	var pids []uint32
	for _, party := range p.parties {
		if party.state == moving {
			moves, pids = append(moves, party), append(pids, party.pid)
		}
	}
	for range 2 {
		locked, err := p.stage.observer.waiting(ctx, pids)
		if err != nil || len(locked) < len(pids) {
			return false, err
		}
	}
	for _, party := range moves {
		party.state, party.exchange.Waited = waiting, true
	}
	return true, nil
}

// await waits for an event.
func (p *play) await() error {
	select {
	case e := <-p.events:
		p.note(e)
		return nil
	case <-time.After(patience):
		return ErrStuck
	}
}
