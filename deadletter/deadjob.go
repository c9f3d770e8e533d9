package deadletter

import (
	"time"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// letterKey is a letter that a call has found and locked, with its job.
type letterKey struct {
	DeadLetterID, JobID string
	Instant             string // its moved_at, as a cursor has it
}

// queueFind queues a statement that finds and locks letters, and before it what tells
// the locks of their table from theirs.
func (t target) queueFind(b *pgx.Batch, found *[]letterKey, sql string, w *where) {
	t.queueHoldLetters(b)
	t.queueCheckMovedAt(b)
	b.Queue(t.in(sql, "{and}", w.sql.String()), w.args...).Query(func(rows pgx.Rows) error {
		return pgxscan.ScanAll(found, rows)
	})
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

// isGone reports whether no queue row has the job's id.
func (job *deadJob) isGone() bool { return job.dead+job.alive == 0 }

// fail marks the job as rejected.
func (job *deadJob) fail(cause error) { job.failure = newFailure(job.found[0], job.id, cause) }

// groupByJob makes jobs of letters, in the order of their oldest ones.
func groupByJob(letters []letterKey) []*deadJob {
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

// keysOf are the ids of jobs, as one parameter.
func keysOf(jobs []*deadJob) string {
	return pgtext.Array(len(jobs), func(i int) string { return jobs[i].id })
}

// queueHoldLetters queues the lock of the letters' table. In place it is the queue's,
// which is held with its rows.
func (t target) queueHoldLetters(b *pgx.Batch) {
	if !t.inPlace {
		b.Queue(t.in(sqlHoldLetters))
	}
}

// queueLockRows queues what locks the dead queue rows of jobs and counts the others. A
// row that comes to be dead in between is taken for locked by someone else. held are
// the states of the rows that will be written.
func (t target) queueLockRows(b *pgx.Batch, jobs []*deadJob, held string) {
	keys := keysOf(jobs)
	var n int
	var dead bool
	if t.hasState {
		held = t.in("{state} in (" + held + ") and ")
	} else {
		held = ""
	}
	b.Queue(t.in(sqlHoldQueue, "{held}", held))
	queueEach(b, func() { jobs[n-1].locked++ }, []any{&n}, t.in(sqlDead), keys)
	queueEach(b, func() {
		if dead {
			jobs[n-1].dead++
		} else {
			jobs[n-1].alive++
		}
	}, []any{&n, &dead}, t.in(sqlRows), keys)
}

// queueEach queues a statement, and calls do for each row that is scanned.
func queueEach(b *pgx.Batch, do func(), scans []any, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, scans, func() error {
			do()
			return nil
		})
		return err
	})
}

// queueCollect queues a write and collects the keys that it returns.
func queueCollect(b *pgx.Batch, keys map[string]bool, sql string, args ...any) {
	var key *string
	queueEach(b, func() {
		if key != nil {
			keys[*key] = true
		}
	}, []any{&key}, sql, args...)
}

func containsAll(set map[string]bool, keys []string) bool {
	for _, key := range keys {
		if !set[key] {
			return false
		}
	}
	return true
}
