package reaper

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// copied looks whether the dead letters have room for what a move copies from the
// queue: the key, the kind, and the whole row.
func (v *verifier) copied(t *catalog.Table, object string) {
	c := v.cfg.Queue.Columns
	v.keyFits(t.Column("job_id"), v.queueFound.Column(c.JobID), object)
	v.shorter(t.Column("job_id"), v.queueFound.Column(c.JobID), object)
	if c.JobKind != None {
		v.kindFits(t.Column("job_kind"), v.queueFound.Column(c.JobKind), object)
		v.shorter(t.Column("job_kind"), v.queueFound.Column(c.JobKind), object)
	}
	if job := t.Column("job"); job != nil && job.Type == "jsonb" {
		v.bounded(object)
	}
}

// numbers are types of numbers, each with room for all of those before it.
var numbers = []string{"smallint", "integer", "bigint", "numeric"}

// keyFits reports a key of another type that an assignment does not convert to, or
// that has less room. Any key fits into a text. Types that are no keys at all are
// reported already.
func (v *verifier) keyFits(letter, queue *catalog.Column, object string) {
	if letter == nil || queue == nil || !slices.Contains(keys, letter.Type) || !slices.Contains(keys, queue.Type) {
		return
	}
	from, to := slices.Index(numbers, queue.Type), slices.Index(numbers, letter.Type)
	if slices.Contains(texts, letter.Type) || letter.Type == queue.Type || from >= 0 && from <= to {
		return
	}
	v.add(Problem{
		Code: CodeKeyType, Object: object + `."job_id"`,
		Message: fmt.Sprintf("The column is a %s, and the queue's key is a %s: every move fails.",
			letter.TypeSQL, queue.TypeSQL),
		Fix: fmt.Sprintf(`alter table %s alter column "job_id" type %s using "job_id"::text::%[2]s`,
			object, queue.TypeSQL),
	})
}

// kindFits reports a column of kinds that does not take each kind of the queue's.
func (v *verifier) kindFits(letter, queue *catalog.Column, object string) {
	if letter == nil || queue == nil {
		return
	}
	name := object + `."job_kind"`
	if letter.Type != queue.Type && !slices.Contains(texts, letter.Type) {
		v.add(Problem{
			Code: CodeColumnType, Object: name,
			Message: fmt.Sprintf("The column is a %s, and the queue's kind is a %s: every move fails.",
				letter.TypeSQL, queue.TypeSQL),
			Fix: retype(object, `"job_kind"`, "text"),
		})
	}
	if letter.NotNull && !queue.NotNull && v.queueFound.Kind != "v" {
		p := Problem{
			Code: CodeColumnRequired, Severity: SeverityWarning, Object: name,
			Message: "The column must not be NULL, and the queue's kind may be: a job without a kind cannot be moved.",
			Fix:     fmt.Sprintf(`alter table %s alter column "job_kind" drop not null`, object),
		}
		if !letter.NotNullItself {
			p.Fix = retype(object, `"job_kind"`, letter.Base)
		}
		v.add(p)
	}
}

// room is how many characters a key has at most in its text form.
var room = map[string]int{"uuid": 36, "bigint": 20, "integer": 11, "smallint": 6}

// shorter reports a text that holds less than the queue's column may have.
func (v *verifier) shorter(letter, queue *catalog.Column, object string) {
	if letter == nil || queue == nil || letter.Length == 0 {
		return
	}
	longest := cmp.Or(queue.Length, room[queue.Type])
	if longest > 0 && longest <= letter.Length {
		return
	}
	for _, label := range queue.Enum {
		longest = max(longest, len(label))
	}
	if len(queue.Enum) > 0 && longest <= letter.Length {
		return
	}
	quoted := pgx.Identifier{letter.Name}.Sanitize()
	v.add(Problem{
		Code: CodeColumnLength, Severity: SeverityWarning, Object: object + "." + quoted,
		Message: fmt.Sprintf("The column holds %d characters, and the queue's %s is a %s: "+
			"a job with more cannot be moved.", letter.Length, pgx.Identifier{queue.Name}.Sanitize(), queue.TypeSQL),
		Fix: retype(object, quoted, "text"),
	})
}

// bounded reports that a jsonb does not hold all that the queue's rows may.
func (v *verifier) bounded(object string) {
	for _, column := range v.queueFound.Columns {
		if column.Type != "json" && column.Type != "json[]" {
			continue
		}
		v.add(Problem{
			Code: CodeColumnType, Severity: SeverityWarning, Object: object + `."job"`,
			Message: fmt.Sprintf(`The column is a jsonb, and the queue's %s is a %s: a job whose value has \u0000, `+
				`or a number that a jsonb cannot hold, cannot be moved.`,
				pgx.Identifier{column.Name}.Sanitize(), column.Type),
			Fix: fmt.Sprintf(`alter table %s alter column "job" type json using "job"::json`, object),
		})
		return
	}
}

// single looks for a key that lets a job be moved once only. A job that was sent
// back to the queue may die again.
func (v *verifier) single(t *catalog.Table, object string) {
	same := []string{"job_id", "job_kind", "attempts", "max_attempts", "final_error", "moved_by"}
	for _, key := range t.Keys {
		varies := slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(same, name) })
		if varies || !slices.Contains(key.Columns, "job_id") {
			continue
		}
		drop := "drop index " + key.Index
		if key.Constraint != "" {
			drop = fmt.Sprintf("alter table %s drop constraint %s", object, key.Constraint)
		}
		v.add(Problem{
			Code: CodeKeyType, Severity: SeverityWarning, Object: object + `."job_id"`,
			Message: fmt.Sprintf("The unique index %s lets a job be moved once: "+
				"a job that was sent back and dies again cannot be moved.", key.Index),
			Fix: fmt.Sprintf("%s;\ncreate index on %s (\"job_id\")", drop, object),
		})
	}
}
