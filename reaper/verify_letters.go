package reaper

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/catalog"
)

// deadLetterTable looks at the table, at its columns that nobody fills, and at
// the privilege to copy whole rows of the queue.
func (v *verifier) deadLetterTable(ctx context.Context, mover deadletter.Table) error {
	if v.queueFound != nil && !v.queueFound.SelectAll {
		v.lacks(v.queue.Table, "select")
	}
	name := mover.Name
	if len(name) == 0 {
		name = pgx.Identifier{"job_dead_letter"}
	}
	insert := []string{"insert"}
	needs := []need{
		{"dead_letter_id", nil, "uuid primary key default gen_random_uuid()", reads},
		{"job_id", keys, v.keyType() + " not null", []string{"select", "insert"}},
		{"job_kind", nil, "text not null", insert},
		{"attempts", counts, "integer not null", insert},
		{"max_attempts", counts, "integer not null", insert},
		{"final_error", texts, "text not null", insert},
		{"moved_by", texts, "text not null", insert},
		{"job", []string{"jsonb", "json", "text"}, "jsonb not null", insert},
		{"moved_at", instants, "timestamptz not null default now()", optional},
		{"redriven_at", instants, "timestamptz", optional},
		{"redriven_by", texts, "text", optional},
	}
	object := name.Sanitize()
	t, err := v.table(ctx, "dead-letter table", name, needs)
	if err != nil || t == nil {
		return err
	}
	v.filled(t, object, needs)
	v.identity(t, object, "redrive and purge", SeverityWarning, true)
	if v.queueFound != nil {
		v.copied(t, object)
	}
	v.single(t, object)
	return v.writes(ctx, t, object, letterWrites(v.cfg.Queue.Columns.JobKind == None))
}

// keyType is the type of the queue's key, for a statement that makes a table.
func (v *verifier) keyType() string {
	if v.queueFound != nil {
		if column := v.queueFound.Column(v.cfg.Queue.Columns.JobID); column != nil {
			return column.TypeSQL
		}
	}
	return "uuid"
}

// letterWrites are what the library writes into the dead letters.
func letterWrites(kindless bool) []write {
	move := write{act: "move", values: some("job_id", "attempts", "max_attempts", "job")}
	kind := value{column: "job_kind"}
	if kindless {
		kind.kind = known // it is empty
	}
	move.values = append(move.values, kind,
		value{"final_error", known, FinalErrorReaped}, value{"moved_by", actorName, ""})
	redrive := write{act: "redrive", severity: SeverityWarning, values: some("redriven_at")}
	redrive.values = append(redrive.values, value{"redriven_by", actorName, ""})
	return []write{move, redrive}
}

// filled looks for columns that an insert must fill, and does not.
func (v *verifier) filled(t *catalog.Table, object string, needs []need) {
	known := map[string]bool{}
	for _, n := range needs {
		known[n.name] = slices.Contains(n.privileges, "insert")
	}
	for _, column := range t.Columns {
		if column.NotNull && !column.Filled && !known[column.Name] {
			quoted := pgx.Identifier{column.Name}.Sanitize()
			v.add(Problem{
				Code: CodeColumnRequired, Object: object + "." + quoted,
				Message: "The column must not be NULL and has no default, so no dead letter can be stored.",
				Fix:     fmt.Sprintf("alter table %s alter column %s drop not null", object, quoted),
			})
		}
	}
}
