package mapping

import (
	"fmt"
	"strconv"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Counter is the column in which a reap counts.
func (q Queue) Counter() string {
	if q.LostLeases != "" {
		return q.LostLeases
	}
	return q.Attempts
}

// Step is how much a reap adds to the counter: nothing where a claim has counted.
func (q Queue) Step() int {
	if q.CountsAtClaim && q.LostLeases == "" {
		return 0
	}
	return 1
}

// count adds what a reap counts, and what it may come to.
func (b *builder) count() {
	b.Add("counter", b.counter)
	maximum, attempts := b.maximum(), "u.attempts"
	limit, counted := "coalesce("+maximum+", 9223372036854775807)::bigint", "q."+b.counter+" = u.attempts"
	current, lost := "coalesce(q."+b.attempts+", 0)", ""
	once := "q." + b.attempts + " = p.attempts + 1"
	switch {
	case b.q.LostLeases != "":
		limit, attempts = strconv.Itoa(b.q.MaxLostLeases)+"::bigint", current
		once, lost = current+" in (p.attempts, p.attempts - 1)", ",\n  coalesce(q."+b.counter+", 0)::bigint as lost"
	case b.q.CountsAtClaim:
		counted, once = current+" = u.attempts", current+" = p.attempts"
	}
	b.Add("counted_once", once)
	if b.q.TimesInUTC {
		lost += ",\n  " + b.inUTC("q."+b.scheduledAt) + " as scheduled_at"
	}
	b.Add("lost", lost)
	b.Add("maximum", maximum)
	b.Add("limit", limit)
	b.Add("step", strconv.Itoa(b.q.Step()))
	b.Add("counted", counted)
	b.Add("letter_attempts", attempts)
	label, _ := pgtext.Label(b.q.Counter()) // its fault is the column's, reported already
	b.Add("counter_label", label)
}

// maximum is the maximum of attempts of q, or NULL.
func (b *builder) maximum() string {
	if b.q.MaxAttempts == "" {
		return strconv.Itoa(b.q.Maximum) + "::bigint"
	}
	sql := "q." + b.Column("max_attempts", b.q.MaxAttempts)
	if extra := b.q.ExtraAttempts; extra > 0 {
		sql = fmt.Sprintf("(%s::bigint + least(%d, 9223372036854775807 - greatest(%[1]s::bigint, 0)))", sql, extra)
	}
	if b.q.Maximum > 0 {
		sql = fmt.Sprintf("coalesce(%s::bigint, %d)", sql, b.q.Maximum)
	}
	return sql
}
