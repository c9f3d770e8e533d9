package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/stmt"
)

// begin begins the transaction, reads the gates, and claims the first batch, all in
// one exchange if it can. reason says why the apply is refused. A closed gate then
// meets jobs that are locked already, and the end of the transaction lets them go.
func (a *attempt) begin(ctx context.Context) (jobs []*claimedJob, reason string, err error) {
	if a.tx, err = pgtx.Open(ctx, a.r.db); err != nil {
		return nil, "", fmt.Errorf("reaper: begin: %w", err)
	}
	a.tx.Setting(a.queueFirstSettings)
	if known := a.r.tables.Load(); a.needsPrecheck(known) {
		reason, err = a.precheck(ctx, known)
	} else {
		a.tables = *known
	}
	if err != nil || reason != "" {
		return nil, reason, err
	}
	batch := a.firstBatch()
	a.queueGates(batch, true)
	read := a.queueClaim(batch)
	if err := a.tx.Send(ctx, batch); err != nil {
		return nil, "", &claimError{err: err, atGates: a.isOfGates(err)}
	}
	if reason, err = a.refusal(ctx); err == nil && reason == "" {
		jobs, err = read()
	}
	return jobs, reason, err
}

// firstBatch returns a batch that reads the transaction's clock, if the settings have
// not done so: a caller's transaction keeps the caller's.
func (a *attempt) firstBatch() *pgx.Batch {
	batch := a.tx.Batch()
	if a.r.nested && a.now.IsZero() {
		batch.Queue("select " + sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&a.now, &a.plainStyles) })
	}
	return batch
}

// needsPrecheck reports whether there is something to read before the claim.
func (a *attempt) needsPrecheck(known *stmt.Tables) bool {
	return known == nil || a.prechecks || a.r.source == nil || a.limitsStale() || a.r.refused.Load()
}

// look sends the beginning of the transaction by itself, and reads without a lock
// what may refuse the apply: so a gate that stays closed costs no lock, and one that
// is closed is told before an error of the claim. A source of the caller's own is
// read here. It also finds out what is known of the tables, if that is not known yet.
func (a *attempt) precheck(ctx context.Context, known *stmt.Tables) (reason string, err error) {
	batch := a.firstBatch()
	if known == nil {
		known = &stmt.Tables{}
		known.Queue(batch, a.r.cfg.Queue.Name, a.r.letters)
		known.QueueZone(batch, a.r.cfg.Queue.Name, a.r.cfg.Queue.Columns.ScheduledAt)
	}
	a.queueGates(batch, false)
	overfull := a.queueOverfull(batch)
	if err := a.tx.Send(ctx, batch); err != nil {
		return "", fmt.Errorf("reaper: read gates: %w", err)
	}
	a.tables = *known
	a.r.tables.Store(known)
	if a.r.source == nil {
		reason, err = a.readGates(ctx)
	} else {
		reason, err = a.refusal(ctx)
	}
	if err == nil && reason == "" && *overfull {
		reason = ReasonMaxStaleExceeded
	}
	if err == nil && reason == "" {
		err = a.checkZone()
	}
	return reason, err
}

// checkZone reports a time to run that would be taken for one in the session's zone.
func (a *attempt) checkZone() error {
	if zoneless := a.tables.Zoneless; zoneless != nil && *zoneless != a.r.cfg.Queue.TimesInUTC {
		return fmt.Errorf("%w, or the time to run is not of its kind", ErrLeaseType)
	}
	return nil
}

// queueGates queues the reading of the gates. A source of the caller's own is read by
// precheck.
func (a *attempt) queueGates(batch *pgx.Batch, fence bool) {
	if a.r.source != nil {
		a.gates = a.r.source.Queue(batch, gates.Keys(), fence)
	}
}

// refusal is the reason for a refusal, once the gates were answered. Of an answer that is
// unclear the source itself says what it means.
func (a *attempt) refusal(ctx context.Context) (reason string, err error) {
	switch {
	case a.gates == nil:
		return "", nil
	case len(a.gates.Unclear) == 0:
		return a.evaluate(a.gates.Values)
	}
	values, err := a.r.cfg.Gates.Read(ctx, a.tx.Tx, gates.Keys())
	if err != nil {
		return "", fmt.Errorf("reaper: read gates: %w", err)
	}
	return a.evaluate(values)
}

// isOfGates reports whether an error of the exchange that claims came from reading the
// gates. One that came before, when the statements were prepared, may be the claim's.
func (a *attempt) isOfGates(err error) bool {
	return a.gates != nil && !a.gates.Read && !errors.As(err, new(pgx.ErrPreprocessingBatch))
}

// readGates reads a source of the caller's own.
func (a *attempt) readGates(ctx context.Context) (reason string, err error) {
	var values gates.Values
	err = recoverPanic("source", func() (err error) {
		values, err = a.r.cfg.Gates.Read(ctx, a.tx.Tx, gates.Keys())
		return err
	})
	switch {
	case err != nil && a.isBroken():
		return "", fmt.Errorf("reaper: read gates: %w", err)
	case err != nil:
		return "", &sourceError{err}
	}
	return a.evaluate(values)
}

// evaluate returns the reason for a refusal, or keeps the backoff base.
func (a *attempt) evaluate(values gates.Values) (reason string, err error) {
	if reason, err = values.Refusal(a.now); err != nil || reason != "" {
		return reason, err
	}
	a.baseSec, err = values.BackoffBase()
	return "", err
}

// limitsStale reports whether too many stale leases refuse the apply. A plan is what
// a person looked at.
func (a *attempt) limitsStale() bool { return a.r.cfg.MaxStale > 0 && a.req.plan == nil }

// queueOverfull queues the question whether too many leases are stale.
func (a *attempt) queueOverfull(batch *pgx.Batch) *bool {
	overfull := new(bool)
	if a.limitsStale() {
		batch.Queue(a.r.sql.ExceedsMaxStale, a.r.scope, int64(a.r.cfg.MaxStale)).QueryRow(func(row pgx.Row) error {
			return row.Scan(overfull)
		})
	}
	return overfull
}

// claim claims the next batch of a transaction that has claimed already.
func (a *attempt) claim(ctx context.Context) ([]*claimedJob, error) {
	a.req.after = *a.next
	batch := &pgx.Batch{}
	read := a.queueClaim(batch)
	if err := a.tx.Send(ctx, batch); err != nil {
		return nil, &claimError{err: err}
	}
	return read()
}

// queueClaim queues the claim of a batch. The function it returns gives the jobs
// once the batch was answered, with the delay of each that is to be reset.
func (a *attempt) queueClaim(batch *pgx.Batch) func() ([]*claimedJob, error) {
	var jobs []*claimedJob
	scan := func(found pgx.Rows) (err error) {
		jobs, err = a.r.cfg.Queue.scanClaim(found)
		return err
	}
	if a.req.plan != nil {
		a.queuePlan(batch, scan, &jobs)
	} else {
		a.queueSettings(batch)
		sql, args := a.rows().Claim, []any{a.r.scope, int64(a.req.limit), a.req.after.leaseUntil, a.req.after.id}
		if a.req.exclude != "" {
			sql, args = a.rows().ClaimNotRejected, append(args, a.req.exclude)
		}
		batch.Queue(sql, args...).Query(scan)
	}
	return func() ([]*claimedJob, error) {
		a.jobs = append(a.jobs, jobs...)
		a.next = nil
		if len(jobs) == a.req.limit && a.req.plan == nil {
			a.next = jobs[len(jobs)-1].cursor()
		}
		return jobs, a.assignDelays(jobs)
	}
}

// rows are the statements that find rows by their addresses, where that is safe. On
// the isolating way they are found by their keys: a trigger may have moved a row.
func (a *attempt) rows() *stmt.Rows {
	if a.tables.Plain && a.mode == modeFast {
		return &a.r.sql.ByAddress
	}
	return &a.r.sql.ByKey
}

// assignDelays asks the backoff policy for the delay of each job that is reset.
func (a *attempt) assignDelays(jobs []*claimedJob) error {
	return recoverPanic("reaper: backoff policy", func() error {
		for _, job := range jobs {
			if !job.exhausted {
				job.delaySec = min(max(a.r.cfg.backoffOf(job.kind).DelaySec(job.bumped, a.baseSec), 0), backoff.MaxSec)
			}
		}
		return nil
	})
}

// checkLeaseType reports a lease's end without a time zone, which would be taken
// for one in the session's zone, and live leases for stale ones; and a scheduled time
// of the same kind, where it is read.
func (t Table) checkLeaseType(rows pgx.Rows) error {
	if err := rows.Err(); err != nil { // such rows have no fields to ask for
		return err
	}
	times := map[string]string{"lease_until": t.Columns.LeaseUntil, "scheduled_at": t.Columns.ScheduledAt}
	hint := "if it is a timestamp that holds UTC, set Table.TimesInUTC"
	if t.TimesInUTC {
		hint = "Table.TimesInUTC is for timestamp without time zone"
	}
	for _, field := range rows.FieldDescriptions() {
		if column, isTime := times[field.Name]; isTime && field.DataTypeOID != pgtype.TimestamptzOID {
			return fmt.Errorf("%w: column %q; %s", ErrLeaseType, column, hint)
		}
	}
	return nil
}
