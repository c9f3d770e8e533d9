package deadletter

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// found is a letter that a call has found and locked.
type found struct {
	DeadLetterID, JobID, Place string
}

// end is the place of the last of the letters, when there are as many as were
// asked for and so may be more.
func end(letters []found, limit int) place {
	if len(letters) < limit {
		return place{}
	}
	last := letters[len(letters)-1]
	return place{last.Place, last.DeadLetterID}
}

// deadJob is a job with dead letters.
type deadJob struct {
	id      string
	found   []string // its letters that the call has found
	letters []string // all its unredriven ones that could be locked, newest first
	count   int      // of its unredriven letters, locked by someone else or not

	dead   int // queue rows that have its id, in the state of dead letters
	alive  int // those in another state
	locked int // dead ones that this transaction has locked

	skip    string        // why a redrive leaves it alone
	wait    time.Duration // how long after the redrive it is to run
	removed int           // queue rows that a purge has removed
	failure *Failure
}

// gone reports whether no queue row has the job's id.
func (job *deadJob) gone() bool { return job.dead+job.alive == 0 }

// fail marks the job as rejected.
func (job *deadJob) fail(cause error) {
	f := failure(job.found[0], job.id, cause)
	job.failure = &f
}

// group makes jobs of letters, in the order of their oldest ones.
func group(letters []found) []*deadJob {
	var jobs []*deadJob
	byID := map[string]*deadJob{}
	for _, letter := range letters {
		job := byID[letter.JobID]
		if job == nil {
			job = &deadJob{id: letter.JobID}
			byID[letter.JobID] = job
			jobs = append(jobs, job)
		}
		job.found = append(job.found, letter.DeadLetterID)
	}
	return jobs
}

func ids(jobs []*deadJob) []string {
	list := make([]string, len(jobs))
	for i, job := range jobs {
		list[i] = job.id
	}
	return list
}

// queueLook queues a look at the queue rows of jobs, and locks the dead ones. A
// row that comes to be dead in between is taken for locked by someone else. held are
// the states of the rows that will be written.
func (t tables) queueLook(b *pgx.Batch, jobs []*deadJob, held string) {
	keys := array(ids(jobs))
	var n int
	var dead bool
	b.Queue(t.in(sqlHoldQueue, "{held}", t.in(held)))
	each(b, t.in(sqlDead), keys, func() { jobs[n-1].locked++ }, &n)
	each(b, t.in(sqlRows), keys, func() {
		if dead {
			jobs[n-1].dead++
		} else {
			jobs[n-1].alive++
		}
	}, &n, &dead)
}

// each queues a statement over keys, and calls do for each row that is scanned.
func each(b *pgx.Batch, sql, keys string, do func(), scans ...any) {
	b.Queue(sql, keys).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, scans, func() error {
			do()
			return nil
		})
		return err
	})
}

// collect queues a write and collects the keys that it returns.
func collect(b *pgx.Batch, keys map[string]bool, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var key *string
		_, err := pgx.ForEachRow(rows, []any{&key}, func() error {
			if key != nil {
				keys[*key] = true
			}
			return nil
		})
		return err
	})
}

func all(set map[string]bool, keys []string) bool {
	for _, key := range keys {
		if !set[key] {
			return false
		}
	}
	return true
}
