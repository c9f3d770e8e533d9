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

// read takes the places in the batch, counted from 1, that an update returns.
func (t *tally) read(rows pgx.Rows) error {
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
		t.seen[n-1] = true
		return nil
	})
	return err
}

// changed returns the jobs that were checked off. The others are as they were;
// it marks them as failed.
func (t *tally) changed() []*claimed {
	changed := make([]*claimed, 0, len(t.jobs))
	for i, job := range t.jobs {
		if t.seen[i] {
			changed = append(changed, job)
		} else {
			job.failure = &Failure{JobID: job.id, Error: keptBack}
		}
	}
	return changed
}
