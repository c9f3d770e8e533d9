package interleave_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/interleave"
)

// row is a row of one of the tables.
type row struct {
	JobID       string `json:"job_id"`
	State       string `json:"state"`
	Payload     struct{ N int }
	Attempts    int       `json:"attempts"`
	LeaseOwner  string    `json:"lease_owner"`
	LeaseUntil  time.Time `json:"lease_until"`
	ScheduledAt time.Time `json:"scheduled_at"`

	DeadLetterID string     `json:"dead_letter_id"`
	RedrivenAt   *time.Time `json:"redriven_at"`
	Job          *row       `json:"job"`

	Key   string `json:"key"`
	Value string `json:"value"`
}

// id tells rows of a table apart. Jobs may share their job_id.
func (r *row) id() string {
	switch {
	case r.DeadLetterID != "":
		return r.DeadLetterID
	case r.Key != "":
		return r.Key
	}
	return strconv.Itoa(r.Payload.N)
}

// change is what a transaction made of a row.
type change struct {
	who      int
	xid      string
	at       time.Time // the transaction's now()
	place    string
	old, new *row
}

func (c *change) id() string {
	if c.old != nil {
		return c.old.id()
	}
	return c.new.id()
}

// moves reports whether a job was moved to the dead letters.
func (c *change) moves() bool {
	return c.place == "job_queue" && c.old != nil && c.new != nil &&
		c.old.State == "leased" && c.new.State == "dead_letter"
}

// resets reports whether a job's lease was taken from it, and it was sent back.
func (c *change) resets() bool {
	return c.place == "job_queue" && c.old != nil && c.new != nil &&
		c.old.State == "leased" && c.new.State == "retry_waiting"
}

func (c *change) reaps() bool { return c.moves() || c.resets() }

// revives reports whether a dead job was sent back to the queue.
func (c *change) revives() bool {
	return c.place == "job_queue" && c.new != nil && c.new.State == "retry_waiting" &&
		(c.old == nil || c.old.State == "dead_letter")
}

// history is what came of a schedule.
type history struct {
	scenario scenario
	record   *interleave.Record
	outcomes []*outcome

	changes       []*change // in the order in which they were made; of committed transactions alone
	jobs, letters []*row    // as they are in the end
}

const sqlChanges = `select who, xid, at, place, old, new from audit order by n`

// read reads it.
func (w *world) read(ctx context.Context, record *interleave.Record, outcomes []*outcome) (*history, error) {
	h := &history{scenario: w.scenario, record: record, outcomes: outcomes}
	b := &pgx.Batch{}
	b.Queue(sqlChanges).Query(h.scanChanges)
	b.Queue(`select to_jsonb(q) from job_queue q`).Query(scanRows(&h.jobs))
	b.Queue(`select to_jsonb(d) from job_dead_letter d`).Query(scanRows(&h.letters))
	return h, w.pool.SendBatch(ctx, b).Close()
}

// scanChanges makes one change of all that a transaction did to a row.
func (h *history) scanChanges(rows pgx.Rows) error {
	type key struct{ xid, place, id string }
	seen := map[key]*change{}
	var who string
	var c change
	var before, after []byte
	_, err := pgx.ForEachRow(rows, []any{&who, &c.xid, &c.at, &c.place, &before, &after}, func() error {
		next := c
		next.who = int(who[0] - 'a')
		if err := unmarshal(before, &next.old); err != nil {
			return err
		}
		if err := unmarshal(after, &next.new); err != nil {
			return err
		}
		k := key{next.xid, next.place, next.id()}
		if first := seen[k]; first != nil {
			first.new = next.new
			return nil
		}
		seen[k] = &next
		h.changes = append(h.changes, &next)
		return nil
	})
	return err
}

func unmarshal(document []byte, into **row) error {
	if document == nil {
		return nil
	}
	*into = &row{}
	return json.Unmarshal(document, *into)
}

func scanRows(into *[]*row) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var document []byte
		_, err := pgx.ForEachRow(rows, []any{&document}, func() error {
			var r *row
			err := unmarshal(document, &r)
			*into = append(*into, r)
			return err
		})
		return err
	}
}

// by are the changes of a participant that a condition holds of.
func (h *history) by(who int, is func(*change) bool) []*change {
	var changes []*change
	for _, c := range h.changes {
		if c.who == who && is(c) {
			changes = append(changes, c)
		}
	}
	return changes
}

// commits are the changes of a participant by transaction, in the order of its commits.
func (h *history) commits(who int) [][]*change {
	var commits [][]*change
	for _, c := range h.by(who, func(*change) bool { return true }) {
		last := len(commits) - 1
		if last >= 0 && commits[last][0].xid == c.xid {
			commits[last] = append(commits[last], c)
		} else {
			commits = append(commits, []*change{c})
		}
	}
	return commits
}

// digest is what is the same each time that a schedule is played.
func (h *history) digest() string {
	var text strings.Builder
	for _, e := range h.record.Exchanges {
		fmt.Fprintln(&text, *e)
	}
	for who, o := range h.outcomes {
		fmt.Fprintln(&text, who, o.err != nil, o.unknown())
	}
	var changes []string // a statement changes its rows in any order
	for _, c := range h.changes {
		changes = append(changes, fmt.Sprintln(c.who, c.place, c.old.digest(), c.new.digest()))
	}
	slices.Sort(changes)
	return text.String() + strings.Join(changes, "")
}

func (r *row) digest() string {
	if r == nil {
		return "none"
	}
	return fmt.Sprint(r.Payload.N, r.JobID, r.State, r.Attempts, r.LeaseOwner, r.RedrivenAt != nil, r.Key)
}
