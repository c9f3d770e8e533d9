package interleave_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/interleave"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// sqlAudit makes a table in which the participants' transactions write what they change,
// so that what is in it is what was committed. The set-up's own changes are not in it.
const sqlAudit = `
create table audit (
	n     bigserial   primary key,
	who   text        not null default current_setting('application_name'),
	xid   text        not null default pg_current_xact_id()::text,
	at    timestamptz not null default now(),
	place text        not null,
	old   jsonb,
	new   jsonb
);
create function audit() returns trigger language plpgsql as $$
begin
	insert into audit (place, old, new) values (
		tg_argv[0],
		case when tg_op <> 'INSERT' then to_jsonb(old) end,
		case when tg_op <> 'DELETE' then to_jsonb(new) end);
	return null;
end $$;
create trigger audit after insert or update or delete on job_queue for each row
	when (length(current_setting('application_name')) = 1) execute function audit('job_queue');
create trigger audit after insert or update or delete on job_dead_letter for each row
	when (length(current_setting('application_name')) = 1) execute function audit('job_dead_letter');
create trigger audit after insert or update or delete on queue_config for each row
	when (length(current_setting('application_name')) = 1) execute function audit('queue_config');
alter table audit set (autovacuum_enabled = false);
alter table job_dead_letter set (autovacuum_enabled = false);
alter table queue_config set (autovacuum_enabled = false);`

// sqlClear empties the tables. The gates are open, and a job that is reset may be claimed
// at once.
const sqlClear = `
delete from audit;
delete from job_queue;
delete from job_dead_letter;
delete from queue_config;
insert into queue_config (key, value) values
	('queue.job_substrate.enabled', 'true'),
	('queue.lease.reaper_enabled', 'true'),
	('queue.lease.reaper_dry_run_only', 'false'),
	('queue.retry.backoff_base_sec', '0');`

// tidy is after how many schedules the tables are vacuumed.
const tidy = 50

// world is the database of a scenario, and its participants.
type world struct {
	scenario scenario
	pool     *pgxpool.Pool
	stage    *interleave.Stage
	mutant   *mutant // nil: the library as it is

	played int
	last   *history
}

// newWorld makes one. It ends with the test.
func newWorld(t *testing.T, s scenario) *world {
	t.Helper()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, s.tables+sqlAudit, pgx.QueryExecModeSimpleProtocol)
	config := pool.Config().ConnConfig
	config.DefaultQueryExecMode = cmp.Or(s.mode, pgx.QueryExecModeExec)
	stage, err := interleave.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close(context.WithoutCancel(t.Context()))) })
	return &world{scenario: s, pool: pool, stage: stage}
}

// play plays one schedule on fresh rows, and returns what is wrong with its outcome.
func (w *world) play(ctx context.Context, cuts int, choose interleave.Choose) (*interleave.Record, error) {
	if err := w.refill(ctx); err != nil {
		return nil, err
	}
	cast, err := w.scenario.cast(ctx, w)
	if err != nil {
		return nil, err
	}
	calls := make([]interleave.Call, len(cast))
	outcomes := make([]*outcome, len(cast))
	for i, p := range cast {
		o := &outcome{role: p.role}
		outcomes[i] = o
		calls[i] = func(ctx context.Context, conn *pgx.Conn) {
			p.call(ctx, conn, o)
			if w.mutant != nil {
				w.mutant.hears(o)
			}
		}
	}
	record, err := w.stage.Play(ctx, calls, cuts, choose)
	if err != nil {
		return record, err
	}
	w.played++
	h, err := w.read(ctx, record, outcomes)
	if err != nil {
		return record, err
	}
	w.last = h
	if faults := h.faults(); len(faults) > 0 {
		return record, &violation{w.scenario.name, record, faults}
	}
	return record, nil
}

// refill makes the rows anew.
func (w *world) refill(ctx context.Context) error {
	_, err := w.pool.Exec(ctx, sqlClear+w.scenario.rows, pgx.QueryExecModeSimpleProtocol)
	if err == nil && w.played%tidy == tidy-1 {
		_, err = w.pool.Exec(ctx, `vacuum audit, job_queue, job_dead_letter, queue_config`)
	}
	return err
}

// violation is a schedule whose outcome is wrong.
type violation struct {
	scenario string
	record   *interleave.Record
	faults   []string
}

// Error is one line with the schedule, as the flag -schedule takes it, and one for each
// exchange.
func (v *violation) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n-schedule %s/%s\n", strings.Join(v.faults, "\n"), v.scenario, v.record.Schedule)
	for _, e := range v.record.Exchanges {
		fmt.Fprintf(&text, "  %s %s", e.Action, strings.Join(e.Statements, ", "))
		if e.Waited {
			text.WriteString(" (waited)")
		}
		if e.Committed {
			text.WriteString(" (committed)")
		}
		text.WriteString("\n")
	}
	return text.String()
}

// isViolation reports whether an error is one of the outcome.
func isViolation(err error) bool { return errors.As(err, new(*violation)) }
