package reaper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
)

// Apply reaps the oldest stale leases, at most limit, in one transaction: a job
// with tries left goes back to the queue with a delay, one whose tries are spent
// to the dead letters. actor says who reaps; it is stored with the dead letters.
//
// A refusal is not an error: the result is Refused with a Reason, and nothing
// was touched. An empty or white actor is refused as [ReasonActorRequired]
// before a transaction is begun; a closed gate inside it.
//
// A job that PostgreSQL or the mover turns away stays as it was and is listed in
// Failures; the others are settled. Rows that someone else has locked are left
// to them. A lease that is not stale by the database's clock at the start of the
// transaction is never touched.
//
// After an error nothing has changed, except after [ErrOutcomeUnknown], when
// nobody can know. A limit below 1 is [ErrLimit], an actor that is not text
// [ErrActor], a setting that does not parse a [gates.ValueError], a standby or a
// read-only connection [ErrReadOnly]; what else PostgreSQL says is a
// [pgconn.PgError]. When ctx ends before the exchange that commits, the
// transaction is rolled back; when it ends during it, that is
// [ErrOutcomeUnknown]. A panic in a source, a policy, a mover or a hook is an
// error like any other of theirs.
//
// With a pgx.Tx as DB all of this happens in a savepoint, and the row locks stay
// until the caller's transaction ends.
func (r *Reaper) Apply(ctx context.Context, actor string, limit int) (*ApplyResult, error) {
	if err := errors.Join(checkLimit(limit), checkActor(actor)); err != nil {
		return nil, err
	}
	result, _, err := r.apply(ctx, order{actor: actor, limit: limit})
	return result, err
}

// order is what an apply is asked to do.
type order struct {
	actor string
	limit int
	stretch
	plan []Job // nil: the oldest stale leases
	asks bool  // whether it is crowded

	exclude string // the parameter of sqlNotRejected; "": none

	timeout time.Duration // 0: as long as it takes

	care      care
	conflicts int // how often it was begun again after one
}

// apply reaps one batch, and also returns what it claimed, unless it was refused.
func (r *Reaper) apply(ctx context.Context, o order) (*ApplyResult, *harvest, error) {
	if strings.TrimSpace(o.actor) == "" {
		return refusal(ReasonActorRequired), nil, nil
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	started := time.Now()
	result, found, err := r.persist(ctx, o)
	if err != nil {
		return nil, nil, typed(err)
	}
	r.logApply(ctx, result, time.Since(started))
	return result, found, nil
}

// ask returns the backoff base in seconds, or the reason for a refusal.
func (r *Reaper) ask(ctx context.Context, tx pgx.Tx, o order) (baseSec int64, reason string, err error) {
	baseSec, reason, err = r.readGates(ctx, tx)
	if err != nil || reason != "" || r.cfg.MaxStale == 0 || o.plan != nil {
		return baseSec, reason, err
	}
	var overfull bool
	err = tx.QueryRow(ctx, r.sql.overfull, r.scope, int64(r.cfg.MaxStale)).Scan(&overfull)
	if err != nil {
		return 0, "", fmt.Errorf("reaper: count stale leases: %w", err)
	}
	if overfull {
		return 0, ReasonMaxStaleExceeded, nil
	}
	return baseSec, "", nil
}

// readGates returns the backoff base in seconds, or the reason for a refusal.
func (r *Reaper) readGates(ctx context.Context, tx pgx.Tx) (baseSec int64, reason string, err error) {
	var values gates.Values
	err = guarded("source", func() (err error) {
		values, err = r.cfg.Gates.Read(ctx, tx, gates.Keys())
		return err
	})
	if err != nil && r.ownSource() {
		return 0, "", fmt.Errorf("reaper: read gates: %w", err)
	}
	if err != nil {
		return 0, "", &sourceError{err}
	}
	if values, err = r.dated(ctx, tx, values); err != nil {
		return 0, "", err
	}
	return judge(values)
}

// dated gives values with a window the clock that judges it. The library's own
// sources have done so already; another's may have kept an old one.
func (r *Reaper) dated(ctx context.Context, tx pgx.Tx, values gates.Values) (gates.Values, error) {
	if r.ownSource() {
		return values, nil
	}
	return values.Dated(ctx, tx)
}

// judge returns the backoff base in seconds, or the reason for a refusal.
func judge(values gates.Values) (baseSec int64, reason string, err error) {
	if reason, err = values.Closed(); err != nil || reason != "" {
		return 0, reason, err
	}
	baseSec, err = values.BackoffBase()
	return baseSec, "", err
}

// ownSource reports whether the source of the settings is one of the library's,
// whose errors are the connection's or the server's.
func (r *Reaper) ownSource() bool {
	switch r.cfg.Gates.(type) {
	case gates.Table, gates.CurrentSetting:
		return true
	}
	return false
}

// onApply calls the hook of a pass that changed something.
func (r *Reaper) onApply(ctx context.Context, tx pgx.Tx, result *ApplyResult) error {
	if r.cfg.OnApply == nil || len(result.Actions) == 0 {
		return nil
	}
	err := guarded("hook", func() error { return r.cfg.OnApply(ctx, tx, result) })
	if err != nil {
		return &hookError{err}
	}
	return nil
}
