package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// deadLetters looks at the table of the dead letters, and at the privilege to copy
// whole rows of the queue.
func (v *verifier) deadLetters(ctx context.Context) error {
	if v.target.Letters == nil {
		return nil
	}
	if v.queue != nil && !v.queue.SelectAll {
		v.lacks(v.queue, "select")
	}
	needs := []columnSpec{
		{"dead_letter_id", nil, "uuid primary key default gen_random_uuid()", reads},
		{"job_id", keys, v.keyType() + " not null", "select, insert"},
		{"job_kind", nil, "text not null", inserts},
		{"attempts", counts, "integer not null", inserts},
		{"max_attempts", counts, "integer not null", inserts},
		{"final_error", texts, "text not null", inserts},
		{"moved_by", texts, "text not null", inserts},
		{"job", append([]string{"jsonb", "json"}, texts...), "jsonb not null", inserts},
		{"moved_at", instants, "timestamptz not null default now()", noPrivileges},
		{"redriven_at", instants, "timestamptz", noPrivileges},
		{"redriven_by", texts, "text", noPrivileges},
	}
	t, err := v.table(ctx, "dead-letter table", v.target.Letters, needs)
	if err != nil || t == nil {
		return err
	}
	move := write{"move", severityError, map[string]any{
		"job_id": varies, "job_kind": varies, "attempts": varies, "max_attempts": varies, "job": varies,
		"final_error": v.target.FinalError, "moved_by": actorName,
	}}
	if v.target.Columns.JobKind == "" {
		move.values["job_kind"] = ""
	}
	redrive := write{"redrive", severityWarning, map[string]any{"redriven_at": varies, "redriven_by": actorName}}

	v.requiredColumns(t, move)
	v.identity(t, "redrive and purge", severityWarning, true)
	v.copied(t)
	v.single(t)
	if err := v.writes(ctx, t, move, redrive); err != nil {
		return err
	}
	jsonb := t.Column("job") != nil && t.Column("job").Type == "jsonb"
	return v.statements(ctx, t, v.target.Insert(jsonb))
}

// keyType is the type of the queue's key.
func (v *verifier) keyType() string {
	if v.queue != nil {
		if column := v.queue.Column(v.target.Columns.JobID); column != nil {
			return column.TypeSQL
		}
	}
	return "uuid"
}

// requiredColumns looks for columns that a move must fill, and does not.
func (v *verifier) requiredColumns(t *catalog.Table, move write) {
	for _, column := range t.Columns {
		if _, written := move.values[column.Name]; written {
			continue
		}
		for _, sequence := range column.LockedSequences {
			v.error("privilege_missing", sequence, fmt.Sprintf("grant usage on sequence %s to %s", sequence, v.role),
				"The role %s lacks usage of the sequence that fills %s: every move fails.", v.role, at(t, column.Name))
		}
		switch {
		case column.HasDefault:
		case column.NotNull:
			v.error("column_required", at(t, column.Name), alter(t, column.Name, "drop not null"),
				"The column must not be NULL and has no default, so no dead letter can be stored.")
		case column.Name == "moved_at":
			v.warn("column_nullable", at(t, column.Name), alter(t, column.Name, "set default now()"),
				"The column has no default: List, Redrive and Purge fail on a letter without a time.")
		}
	}
}

// copied looks whether the dead letters have room for what a move copies from the
// queue: the key, the kind, and the whole row.
func (v *verifier) copied(t *catalog.Table) {
	if v.queue == nil {
		return
	}
	for _, copied := range []struct {
		letter, queue string
		look          func(t *catalog.Table, letter, queue *catalog.Column)
	}{
		{"job_id", v.target.Columns.JobID, v.keyFits},
		{"job_kind", v.target.Columns.JobKind, v.kindFits},
		{"attempts", v.target.Columns.Attempts, v.countFits},
		{"max_attempts", v.target.Columns.MaxAttempts, v.countFits},
	} {
		letter, queue := t.Column(copied.letter), v.queue.Column(copied.queue)
		if letter != nil && queue != nil {
			copied.look(t, letter, queue)
			v.shorter(t, letter, queue)
		}
	}
	switch job := t.Column("job"); {
	case job == nil:
	case job.Type == "jsonb":
		v.bounded(t)
	case job.Length > 0:
		v.warn("column_length", at(t, "job"), retype(t, "job", "text"),
			"The column holds %d characters: a job with more cannot be moved.", job.Length)
	}
}

// numbers are types of numbers, each with room for all of those before it.
var numbers = []string{"smallint", "integer", "bigint", "numeric"}

// keyFits reports a key of another type that an assignment does not convert to, or
// that has less room. Any key fits into a text. Types that are no keys at all are
// reported already.
func (v *verifier) keyFits(t *catalog.Table, letter, queue *catalog.Column) {
	from, to := slices.Index(numbers, queue.Type), slices.Index(numbers, letter.Type)
	if !slices.Contains(keys, letter.Type) || !slices.Contains(keys, queue.Type) ||
		slices.Contains(texts, letter.Type) || letter.Type == queue.Type || from >= 0 && from <= to {
		return
	}
	v.error("key_type", at(t, letter.Name),
		alter(t, letter.Name, fmt.Sprintf(`type %s using "job_id"::text::%[1]s`, queue.TypeSQL)),
		"The column is a %s, and the queue's key is a %s: every move fails.", letter.TypeSQL, queue.TypeSQL)
}

// countFits reports a counter that has less room than the queue's.
func (v *verifier) countFits(t *catalog.Table, letter, queue *catalog.Column) {
	if slices.Index(numbers, letter.Type) < slices.Index(numbers, queue.Type) && slices.Contains(counts, letter.Type) {
		v.warn("column_type", at(t, letter.Name), retype(t, letter.Name, queue.Type),
			"The column is a %s, and the queue's %s is of type %s: a job with a larger number cannot be moved.",
			letter.Type, quote(queue.Name), queue.Type)
	}
}

// kindFits reports a column of kinds that does not take each kind of the queue's.
func (v *verifier) kindFits(t *catalog.Table, letter, queue *catalog.Column) {
	if letter.Type != queue.Type && !slices.Contains(texts, letter.Type) {
		v.error("column_type", at(t, letter.Name), retype(t, letter.Name, "text"),
			"The column is a %s, and the queue's kind is a %s: every move fails.", letter.TypeSQL, queue.TypeSQL)
	}
	if letter.NotNull && !queue.NotNull && v.queue.Kind != "v" {
		fix := alter(t, letter.Name, "drop not null")
		if !letter.NotNullItself {
			fix = retype(t, letter.Name, letter.Base)
		}
		v.warn("column_required", at(t, letter.Name), fix,
			"The column must not be NULL, and the queue's kind may be: a job without a kind cannot be moved.")
	}
}

// room is how many characters a key has at most in its text form.
var room = map[string]int{"uuid": 36, "bigint": 20, "integer": 11, "smallint": 6}

// shorter reports a text that holds less than the queue's column may have.
func (v *verifier) shorter(t *catalog.Table, letter, queue *catalog.Column) {
	longest := cmp.Or(queue.Length, room[queue.Type])
	for _, label := range queue.Enum {
		longest = max(longest, len(label))
	}
	if letter.Length == 0 || longest > 0 && longest <= letter.Length {
		return
	}
	v.warn("column_length", at(t, letter.Name), retype(t, letter.Name, "text"),
		"The column holds %d characters, and the queue's %s is a %s: a job with more cannot be moved.",
		letter.Length, quote(queue.Name), queue.TypeSQL)
}

// bounded reports that a jsonb does not hold all that the queue's rows may.
func (v *verifier) bounded(t *catalog.Table) {
	for _, column := range v.queue.Columns {
		if column.HoldsJSON {
			v.warn("column_type", at(t, "job"), retype(t, "job", "json"),
				`The column is a jsonb, and the queue's %s is a %s: a job whose value has \u0000, `+
					`or a number that a jsonb cannot hold, cannot be moved, and others lose the text of their JSON.`,
				quote(column.Name), column.Type)
			return
		}
	}
}

// single looks for a key that takes a letter with the same values once only. A job that
// was sent back to the queue may die again.
func (v *verifier) single(t *catalog.Table) {
	same := []string{"job_id", "job_kind", "attempts", "max_attempts", "final_error", "moved_by"}
	for _, key := range t.Keys {
		if slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(same, name) }) {
			continue
		}
		fix := "drop index " + key.Index
		if key.Constraint != "" {
			fix = fmt.Sprintf("alter table %s drop constraint %s", t.SQL, key.Constraint)
		}
		column := key.Columns[0]
		if slices.Contains(key.Columns, "job_id") {
			column = "job_id"
			fix += fmt.Sprintf(";\ncreate index on %s (\"job_id\")", t.SQL)
		}
		v.warn("key_type", at(t, column), fix,
			"The unique index %s takes one letter with the same %s: the next one, also of a job that was sent back "+
				"and dies again, cannot be stored.", key.Index, strings.Join(key.Columns, ", "))
	}
}
