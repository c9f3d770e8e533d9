package reaper

import "github.com/jackc/pgx/v5"

// keptBack is a failure's text when an update changed nothing and said nothing.
const keptBack = "the update was turned away without an error, by a trigger or a policy"

// tally checks off the jobs that an update reports as changed.
type tally struct {
	jobs []*claimed
	seen []bool
}

func newTally(jobs []*claimed) *tally {
	return &tally{jobs: jobs, seen: make([]bool, len(jobs))}
}

// read takes the places in the batch, counted from 1, that an update returns, and
// 0 for rows that are not as it wrote them.
func (t *tally) read(rows pgx.Rows) error {
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
		if n > 0 {
			t.seen[n-1] = true
		}
		return nil
	})
	return err
}

// missing returns a failure for each job that was not checked off.
func (t *tally) missing() []*Failure {
	var failures []*Failure
	for i, seen := range t.seen {
		if !seen {
			failures = append(failures, &Failure{JobID: t.jobs[i].id, Error: keptBack})
		}
	}
	return failures
}

// markMissing marks the jobs that were not checked off as failed: they are as
// they were.
func (t *tally) markMissing() { without(t.jobs, t.missing()) }
