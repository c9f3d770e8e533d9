package letter

import (
	"strings"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
)

// DefaultFunction is the name of the function unless it is configured.
const DefaultFunction = "fn_job_move_to_dead_letter"

// sqlCall calls the function for each job, in the order of the array. The call is a scalar
// subquery: if the function returns a set of several rows, it is an error. The empty
// subquery gives the array the type of the queue's key.
//
//	$1 job ids      array of the key's type
//	$2 actor        text
//	$3 final error  text
const sqlCall = `-- deadletter.call
select (select {function}(u.job_id, $2, $3)) as document
from unnest(array_cat(array(select q.{job_id} from {queue} q where false), $1))
  with ordinality as u(job_id, n)
order by u.n`

// Call calls a function of the database for each job of a batch. The caller has checked
// its names.
type Call struct {
	Function, Table pgx.Identifier // the function that moves jobs, and the queue
	JobID           string         // the key of the queue
	IDs             []string       // of the jobs, in their text form
	Actor           string
	FinalError      string
}

// Queue queues the call. Once the results of b are read, documents has the function's
// result for each job, in the order of IDs.
func (c Call) Queue(b *pgx.Batch) *[][]byte {
	sql := strings.NewReplacer(
		"{function}", c.Function.Sanitize(),
		"{queue}", c.Table.Sanitize(),
		"{job_id}", pgx.Identifier{c.JobID}.Sanitize(),
	).Replace(sqlCall)
	documents := &[][]byte{}
	b.Queue(sql, c.IDs, c.Actor, c.FinalError).Query(func(rows pgx.Rows) error {
		return pgxscan.ScanAll(documents, rows)
	})
	return documents
}

// Receipts makes a receipt of each document. NULL counts as a refusal.
func Receipts[R any](
	ids []string, documents [][]byte,
	read func(jobID string, document []byte) (R, error), refuse func(jobID, reason string) R,
) ([]R, error) {
	receipts := make([]R, len(documents))
	for i, document := range documents {
		if document == nil || string(document) == "null" {
			receipts[i] = refuse(ids[i], "the function returned NULL")
			continue
		}
		var err error
		if receipts[i], err = read(ids[i], document); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}
