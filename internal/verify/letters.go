package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// deadLetters checks the table of the dead letters.
func (v *verifier) deadLetters(ctx context.Context) error {
	if v.target.Letters == nil {
		return nil
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
	if v.target.Queue.JobKind == "" {
		move.values["job_kind"] = ""
	}
	redrive := write{"redrive", severityWarning, map[string]any{"redriven_at": varies, "redriven_by": actorName}}

	v.requiredColumns(t, move)
	v.identity(t, "redrive and purge", severityWarning, true)
	v.remote(t, "A redrive or a purge")
	v.letterKey(t)
	v.copied(t)
	v.uniqueValues(t)
	if err := v.writes(ctx, t, move, redrive); err != nil {
		return err
	}
	jsonb := t.Column("job") != nil && t.Column("job").Type == "jsonb"
	return v.statements(ctx, t, v.target.Insert(jsonb))
}

// letterKey checks whether something makes a letter's id unique.
func (v *verifier) letterKey(t *catalog.Table) {
	const id = "dead_letter_id"
	if t.Column(id) != nil && !t.HasKey(id) && t.Stored() {
		v.warn("key_missing", at(t, id), uniqueIndex(t, id),
			"Nothing makes the id unique: letters with the same id are redriven or purged as one, "+
				"and finding one reads the whole table.")
	}
}

// keyType is the type of the queue's key.
func (v *verifier) keyType() string {
	if v.queue != nil {
		if column := v.queue.Column(v.target.Queue.JobID); column != nil {
			return column.TypeSQL
		}
	}
	return "uuid"
}

// requiredColumns checks for columns that a move must fill, and does not.
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

// copied checks whether the dead letters have room for what a move copies from the
// queue: the key, the kind, the counters, and the whole row.
func (v *verifier) copied(t *catalog.Table) {
	if v.queue == nil {
		return
	}
	q := v.target.Queue
	for _, copied := range []struct {
		letter, queue  string
		types          []string // others are reported already; empty: any type
		code, severity string
	}{
		{"job_id", q.JobID, keys, "key_type", severityError},
		{"job_kind", q.JobKind, nil, "column_type", severityError},
		{"attempts", q.Attempts, counts, "column_type", severityWarning},
		{"max_attempts", q.MaxAttempts, counts, "column_type", severityWarning},
	} {
		letter, queue := t.Column(copied.letter), v.queue.Column(copied.queue)
		if letter == nil || queue == nil {
			continue
		}
		other := func(c *catalog.Column) bool { return copied.types != nil && !slices.Contains(copied.types, c.Type) }
		if problem := misfit(letter, queue); problem != "" && !other(letter) && !other(queue) {
			change := fmt.Sprintf("type %[1]s using %[2]s::text::%[1]s", queue.TypeSQL, quote(letter.Name))
			v.add(copied.severity, copied.code, at(t, letter.Name), unlessView(t, alter(t, letter.Name, change)),
				"The column is of type %s, and the queue's %s is of type %s: %s.",
				letter.TypeSQL, quote(queue.Name), queue.TypeSQL, problem)
		}
		v.shorter(t, letter, queue)
	}
	v.kindRequired(t)
	v.document(t)
}

// numbers are types of numbers, each with room for all of those before it.
var numbers = []string{"smallint", "integer", "bigint", "numeric"}

// misfit says what goes wrong when a value of the queue's is assigned to a letter's column
// of another type; empty: nothing does. Anything fits into a text.
func misfit(letter, queue *catalog.Column) string {
	from, to := slices.Index(numbers, queue.Type), slices.Index(numbers, letter.Type)
	switch {
	case letter.Type == queue.Type, slices.Contains(texts, letter.Type), from >= 0 && from <= to:
		return ""
	case from >= 0 && to >= 0:
		return "a job with a larger number cannot be moved"
	}
	return "every move fails"
}

// kindRequired reports letters that must have a kind, which jobs need not have.
func (v *verifier) kindRequired(t *catalog.Table) {
	letter, queue := t.Column("job_kind"), v.queue.Column(v.target.Queue.JobKind)
	if letter == nil || queue == nil || !letter.NotNull || queue.NotNull || !v.queue.Stored() {
		return
	}
	v.warn("column_required", at(t, letter.Name), nullable(t, letter),
		"The column must not be NULL, and the queue's kind may be: a job without a kind cannot be moved.")
}

// room is how many characters a key has at most in its text form.
var room = map[string]int{"uuid": 36, "bigint": 20, "integer": 11, "smallint": 6}

// shorter reports a text that holds less than the queue's column may have.
func (v *verifier) shorter(t *catalog.Table, letter, queue *catalog.Column) {
	longest := cmp.Or(queue.Length, room[queue.Type])
	for _, label := range queue.Enum {
		longest = max(longest, utf8.RuneCountInString(label))
	}
	if letter.Length == 0 || longest > 0 && longest <= letter.Length {
		return
	}
	v.warn("column_length", at(t, letter.Name), retype(t, letter.Name, "text"),
		"The column holds %d characters, and the queue's %s is a %s: a job with more cannot be moved.",
		letter.Length, quote(queue.Name), queue.TypeSQL)
}

// document reports a column that does not hold all that the queue's rows may. That an
// array's bounds, and whether a jsonb was NULL or null, are not in a document is true of
// nearly every queue, and is not reported.
func (v *verifier) document(t *catalog.Table) {
	job := t.Column("job")
	if job == nil {
		return
	}
	if job.Length > 0 {
		v.warn("column_length", at(t, "job"), retype(t, "job", "text"),
			"The column holds %d characters: a job with more cannot be moved.", job.Length)
	}
	i := slices.IndexFunc(v.queue.Columns, func(c catalog.Column) bool { return c.HoldsJSON })
	if job.Type == "jsonb" && i >= 0 {
		v.warn("column_type", at(t, "job"), retype(t, "job", "json"),
			`The column is a jsonb, and the queue's %s holds json. A job whose json has \u0000, or a number that a `+
				`jsonb cannot hold, cannot be moved. The json of other jobs loses its white space, the order of its `+
				`keys and keys that repeat.`, quote(v.queue.Columns[i].Name))
	}
}

// uniqueValues checks for a key that takes a letter with the same values once only. A job
// that was sent back to the queue may die again.
func (v *verifier) uniqueValues(t *catalog.Table) {
	same := []string{"job_id", "job_kind", "attempts", "max_attempts", "final_error", "moved_by"}
	for _, key := range t.Keys {
		varies := slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(same, name) })
		if varies || key.Index == "" {
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
			"The index %s takes one letter with the same %s: the next one, also of a job that was sent back "+
				"and dies again, cannot be stored.", key.Index, strings.Join(key.Columns, ", "))
	}
}
