package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Special is a value of a set that is none of a column's.
type Special int

const (
	// Now is the start of the transaction, by the database's clock.
	Now Special = iota + 1

	// Keep leaves a column as it is.
	Keep
)

// updates adds what the updates write, and how a row that they wrote is told.
func (b *builder) updates() {
	count := []string{b.counter + " = u.attempts"}
	if b.q.Step() == 0 {
		count = nil
	}
	reset := append(b.toState(b.retrying), count...)
	if b.q.CountsAtClaim && b.q.LostLeases != "" { // the attempt of the claim is given back
		reset = append(reset, b.attempts+" = greatest(q."+b.attempts+", 1) - 1")
	}
	reset = append(reset, b.scheduledAt+" = "+b.now+" + make_interval(secs => u.delay_sec)")
	reset = append(reset, b.endLease("$2", b.q.OnReset)...)
	end := b.endLease("$2", b.q.OnMove)
	b.Add("set_reset", list(reset))
	b.Add("set_close", list(append(append(b.toState(b.dead), count...), end...)))
	b.Add("set_closed", list(append(b.toState(b.dead), end...)))
	b.Add("is_reset", b.isState(b.retrying))
	b.deadRows()
	b.Add("set_requeue", list(b.requeue()))
}

// deadRows adds how a dead job's row differs from others. Without a state it is told by what
// a move wrote; where that cannot tell it, no row counts as dead.
func (b *builder) deadRows() {
	dead, closed, requeued := b.isState(b.dead), b.isState(b.dead), b.isState(b.retrying)
	switch {
	case b.state != "":
	case b.q.MarksMoved():
		dead = "(" + dead + b.conditions(b.q.OnMove) + ")"
		closed, requeued = dead, requeued+" and "+dead+" is not true"
	default:
		dead = "false"
	}
	only := maps.Clone(b.q.Only)
	maps.DeleteFunc(only, func(column string, _ any) bool {
		_, written := b.q.OnMove[column]
		return written
	})
	b.Add("is_dead", dead)
	b.Add("is_closed", closed)
	b.Add("is_requeued", requeued)
	b.Add("only_dead", b.conditions(only))
}

// requeue assigns what sends a dead job back to the queue, as new, after the wait of
// $2 for its place.
func (b *builder) requeue() []string {
	assignments := append(b.toState(b.retrying), b.attempts+" = 0")
	if b.q.LostLeases != "" {
		assignments = append(assignments, b.counter+" = 0")
	}
	assignments = append(assignments, b.scheduledAt+" = "+b.now+" + ($2::bigint[])[u.n] * interval '1 microsecond'")
	return append(assignments, b.endLease("null", b.q.requeued())...)
}

// requeued is OnReset without the counts, which begin at 0 after a redrive. If nothing else
// undoes a mark of a dead job, the times that are marks become NULL.
func (q Queue) requeued() map[string]any {
	set := map[string]any{}
	if !q.isUnmarkedBy(q.OnReset) {
		for column, moved := range q.OnMove {
			if moved == Now && q.Marks(column) {
				set[column] = nil
			}
		}
	}
	maps.Copy(set, q.OnReset)
	maps.DeleteFunc(set, func(column string, _ any) bool { return column == q.Attempts || column == q.LostLeases })
	return set
}

// Requeued are the further columns that a redrive writes, and their values as SQL.
func (q Queue) Requeued() map[string]string {
	b, values := newBuilder(q), map[string]string{}
	for column, value := range q.requeued() {
		if value != Keep {
			_, values[column] = b.pair(column, value)
		}
	}
	return values
}

func list(assignments []string) string { return strings.Join(assignments, ",\n  ") }

// toState assigns a state, if the queue has one.
func (b *builder) toState(state string) []string {
	if b.state == "" {
		return nil
	}
	return []string{b.state + " = " + state}
}

// isState is true of q in a state. Without a state a job is leased or it is not.
func (b *builder) isState(state string) string {
	if b.state == "" {
		return "q." + b.leaseUntil + " is null"
	}
	return "q." + b.state + " = " + state
}

// endLease assigns what ends a lease, the reason, and the further columns of a set.
func (b *builder) endLease(reason string, set map[string]any) (assignments []string) {
	if b.owner != "" && set[b.q.LeaseOwner] != Keep {
		assignments = append(assignments, b.owner+" = null")
	}
	if set[b.q.LeaseUntil] != Keep {
		assignments = append(assignments, b.leaseUntil+" = null")
	}
	if b.lastError != "" {
		assignments = append(assignments, b.lastError+" = "+reason)
	}
	for _, column := range slices.Sorted(maps.Keys(set)) {
		if set[column] != Keep {
			name, value := b.pair(column, set[column])
			assignments = append(assignments, name+" = "+value)
		}
	}
	return assignments
}

// conditions are true of q where it has the values of a set; each begins with an and.
// Any time is taken for Now.
func (b *builder) conditions(set map[string]any) string {
	var sql strings.Builder
	for _, column := range slices.Sorted(maps.Keys(set)) {
		name, value := b.pair(column, set[column])
		switch set[column] {
		case nil:
			value = " is null"
		case Now:
			value = " is not null"
		case Keep:
			continue
		default:
			value = " = " + value
		}
		sql.WriteString(" and q." + name + value)
	}
	return sql.String()
}

// pair is a column of a set and its value, as SQL. A fault of the name is one of
// setNames; one of the value is for CheckValue to report.
func (b *builder) pair(column string, value any) (name, sql string) {
	name, _ = pgtext.Name(pgx.Identifier{column})
	sql, _ = b.literal(value)
	return name, sql
}

// setNames keeps the faults of the names in sets.
func (b *builder) setNames() {
	sets := map[string]map[string]any{"Only": b.q.Only, "OnReset": b.q.OnReset, "OnMove": b.q.OnMove}
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		for _, column := range slices.Sorted(maps.Keys(sets[set])) {
			if _, err := pgtext.Name(pgx.Identifier{column}); err != nil {
				b.Faults = append(b.Faults, fmt.Errorf("column of %s: %w", set, err))
			}
		}
	}
}

// CheckValue reports a value that a set cannot have.
func CheckValue(value any) error {
	_, err := (&builder{}).literal(value)
	return err
}

// literal is a value as a literal without a type, so that it is read as one of the
// column's.
func (b *builder) literal(value any) (string, error) {
	switch value := value.(type) {
	case nil:
		return "null", nil
	case Special:
		if value == Now || value == Keep {
			return b.now, nil
		}
	case bool:
		return "'" + strconv.FormatBool(value) + "'", nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprintf("'%d'", value), nil
	case string:
		if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
			return "", fmt.Errorf("%q is not text", value)
		}
		return pgtext.Literal(value), nil
	}
	return "", fmt.Errorf("%v of type %T is no value of a column", value, value)
}
