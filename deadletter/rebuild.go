package deadletter

import (
	"context"
	"fmt"
	"strings"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// column is a column of the queue that an insert can write.
type column struct {
	Schema, Relation string // the queue's
	Name             string
	Named            int    // which of the queue's named columns it is, from 1; 0: one of the user's own
	Preset           string // what fills it when nothing is said, as SQL; empty: NULL does
}

// rebuild returns the statement that puts rows back into the queue, as the queue
// is today: a column that was dropped since is left out, and one that was added
// since is filled as an insert would fill it.
func (t tables) rebuild(ctx context.Context, tx pgx.Tx) (string, error) {
	q := t.queue
	named := []string{
		q.JobID, q.JobKind, q.MaxAttempts, q.State, q.Attempts, q.ScheduledAt, q.LeaseOwner, q.LeaseUntil, q.LastError,
	}
	var columns []column
	if err := pgxscan.Select(ctx, tx, &columns, sqlColumns, q.Table, array(named)); err != nil {
		return "", err
	}
	if len(columns) == 0 {
		return "", fmt.Errorf("%s has no columns", q.Table)
	}
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], values[i] = quote(c.Name), c.value(q)
	}
	return t.in(sqlRebuild,
		"{columns}", strings.Join(names, ", "),
		"{values}", strings.Join(values, ",\n  "),
		"{row_type}", quote(columns[0].Schema, columns[0].Relation)), nil
}

// value is what a rebuilt row has in the column, as SQL over a letter d and the
// row r that it holds. The key is the letter's own, so that a column that has
// another name by now does no harm; nor does it to what the letter has beside.
func (c column) value(q Queue) string {
	switch c.Named {
	case 1:
		return "d.job_id"
	case 2:
		return c.stored("d.job_kind")
	case 3:
		return c.stored("d.max_attempts")
	case 4:
		return q.RetryWaiting
	case 5:
		return "0"
	case 6:
		return "now()"
	case 7, 8, 9:
		return "null"
	}
	return c.stored(c.Preset)
}

// stored is the column as the letter has it, or something else where it has
// nothing of that name.
func (c column) stored(otherwise string) string {
	value := "r." + quote(c.Name)
	if otherwise == "" {
		return value
	}
	return fmt.Sprintf("case when d.job::jsonb ? %s then %s else %s end", literal(c.Name), value, otherwise)
}

// quote quotes a name that the catalogs have.
func quote(name ...string) string { return pgx.Identifier(name).Sanitize() }

// literal quotes a name as a text. One that a table has can be quoted.
func literal(name string) string {
	sql, err := pgtext.Label(name)
	if err != nil {
		return "''"
	}
	return sql
}
