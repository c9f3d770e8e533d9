package reaper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Privileges that an apply needs on a column.
var (
	reads  = []string{"select"}
	writes = []string{"select", "update"}
)

func (v *verifier) queueTable(ctx context.Context) error {
	c := v.cfg.Queue.Columns
	needs := []need{
		{c.JobID, keys, "uuid primary key default gen_random_uuid()", reads},
		{c.State, texts, "text not null default 'ready'", writes},
		{c.Attempts, counts, "integer not null default 0", writes},
		{c.MaxAttempts, counts, "integer not null default 5", reads},
		{c.ScheduledAt, instants, "timestamptz not null default now()", writes},
		{c.LeaseOwner, nil, "text", writes},
		{c.LeaseUntil, instants, "timestamptz", writes},
	}
	if c.JobKind != None {
		needs = append(needs, need{c.JobKind, nil, "text not null default ''", reads})
	}
	if c.LastError != None {
		needs = append(needs, need{c.LastError, texts, "text", writes})
	}
	before := len(v.problems)
	t, err := v.table(ctx, "queue", v.cfg.Queue.Name, needs)
	if err != nil || t == nil {
		return err
	}
	v.queueFound = t
	v.counters(t)
	v.states(t)
	v.key(t)
	v.identity(t, v.queue.Table, "reset and move", SeverityError, false)
	if err := v.writes(ctx, t, v.queue.Table, v.queueWrites()); err != nil {
		return err
	}
	if slices.ContainsFunc(v.problems[before:], keepsFromReading) {
		return nil // the statements below would fail for what is reported already
	}
	if t.Kind != "f" {
		if err := v.index(ctx, t); err != nil {
			return err
		}
	}
	return v.rows(ctx)
}

// queueWrites are what the reaper and the workers write into the queue.
func (v *verifier) queueWrites() []write {
	c, s := v.cfg.Queue.Columns, v.cfg.Queue.States
	reset := write{act: "reset", values: some(c.Attempts, c.ScheduledAt)}
	move := write{act: "move", values: some(c.Attempts)}
	for _, w := range []struct {
		write            *write
		state, lastError string
	}{
		{&reset, s.RetryWaiting, LastErrorReaped},
		{&move, s.DeadLetter, FinalErrorReaped},
	} {
		w.write.values = append(w.write.values,
			value{c.State, known, w.state}, value{c.LastError, known, w.lastError},
			value{c.LeaseOwner, null, ""}, value{c.LeaseUntil, null, ""})
	}
	lease := write{act: "lease", values: []value{{c.State, known, s.Leased}}}
	return []write{reset, move, lease}
}

// keepsFromReading reports a problem that makes any statement on the queue fail.
func keepsFromReading(p Problem) bool {
	switch p.Code {
	case CodeColumnMissing, CodeColumnType, CodeStateMissing:
		return true
	case CodePrivilegeMissing:
		return !strings.HasPrefix(p.Fix, "grant update")
	}
	return false
}

// counters looks at the columns that count tries.
func (v *verifier) counters(t *catalog.Table) {
	if t.Kind == "v" {
		return // the catalogs do not say of a view's columns whether they may be NULL
	}
	c := v.cfg.Queue.Columns
	for _, counter := range []struct{ name, fill string }{
		{c.Attempts, "0"}, {c.MaxAttempts, "5"},
	} {
		column := t.Column(counter.name)
		if column == nil || column.NotNull {
			continue
		}
		name := pgx.Identifier{counter.name}.Sanitize()
		v.add(Problem{
			Code: CodeColumnNullable, Severity: SeverityWarning, Object: v.queue.Table + "." + name,
			Message: "The column may be NULL. NULL attempts count as 0, and a job with a NULL maximum never dies.",
			Fix: fmt.Sprintf("update %[1]s set %[2]s = %[3]s where %[2]s is null;\n"+
				"alter table %[1]s alter column %[2]s set not null", v.queue.Table, name, counter.fill),
		})
	}
}

// states looks whether an enum has the states.
func (v *verifier) states(t *catalog.Table) {
	column := t.Column(v.cfg.Queue.Columns.State)
	if column == nil || len(column.Enum) == 0 {
		return
	}
	s := v.cfg.Queue.States
	for _, state := range []string{
		s.Leased, s.RetryWaiting, s.DeadLetter,
	} {
		label, err := pgtext.Label(state)
		if err != nil || slices.Contains(column.Enum, state) {
			continue
		}
		v.add(Problem{
			Code: CodeStateMissing, Object: column.TypeSQL,
			Message: fmt.Sprintf("The enum of the queue's states has no %s.", label),
			Fix:     fmt.Sprintf("alter type %s add value %s", column.TypeSQL, label),
		})
	}
}

func (v *verifier) key(t *catalog.Table) {
	id := v.cfg.Queue.Columns.JobID
	if t.Column(id) == nil || t.HasKey(id) || !t.Stored() {
		return
	}
	columns := []string{v.queue.JobID}
	for _, column := range t.Partition {
		if column != id {
			columns = append(columns, pgx.Identifier{column}.Sanitize())
		}
	}
	v.add(Problem{
		Code: CodeKeyMissing, Object: v.queue.Table + "." + v.queue.JobID,
		Message: "Nothing makes the id unique: two jobs with one id are settled as one, and finding one takes a scan.",
		Fix: fmt.Sprintf("create unique index%s on %s (%s)",
			concurrently(t), v.queue.Table, strings.Join(columns, ", ")),
	})
}

// concurrently spares a plain table the lock; PostgreSQL has no such thing for a
// partitioned one.
func concurrently(t *catalog.Table) string {
	if t.Partitioned() {
		return ""
	}
	return " concurrently"
}
