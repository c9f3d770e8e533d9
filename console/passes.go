package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/reaper"
)

// Passes remembers the last passes of a loop in this process, to show them:
//
//	passes := &console.Passes{}
//	go r.Run(ctx, actor, reaper.RunConfig{OnPass: passes.Add})
//
// Its zero value works, and it may be used by any number of goroutines at once.
type Passes struct {
	mu   sync.Mutex
	last []pass // oldest first
}

// pass is what a pass came to.
type pass struct {
	At      time.Time `json:"at"` // its end, by this machine's clock
	TookMS  int64     `json:"took_ms"`
	Resets  int       `json:"reset_count"`
	Moves   int       `json:"dead_letter_count"`
	Failed  int       `json:"failed_count"`
	Refused string    `json:"refused,omitempty"` // the reason
	Error   string    `json:"error,omitempty"`
}

// keptPasses is how many passes are remembered.
const keptPasses = 60

// Add is for the loop's OnPass. A caller with an OnPass of its own calls it from there.
func (p *Passes) Add(_ context.Context, done reaper.Pass) {
	added := pass{At: time.Now().UTC(), TookMS: done.Took.Milliseconds()}
	switch {
	case done.Err != nil:
		added.Error = ofPass(done.Err)
	case done.Result != nil && done.Result.Refused:
		added.Refused = done.Result.Reason
	case done.Result != nil:
		added.Resets, added.Moves = done.Result.ResetCount, done.Result.DeadLetterCount
		added.Failed = done.Result.FailedCount
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, added)
	if len(p.last) > keptPasses {
		p.last = slices.Delete(p.last, 0, len(p.last)-keptPasses)
	}
}

// ofPass says of an error what the pages may show.
func ofPass(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Message
	}
	_, text := explain(err)
	return text
}

func (p *Passes) newest() []pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := slices.Clone(p.last)
	slices.Reverse(last)
	return last
}
