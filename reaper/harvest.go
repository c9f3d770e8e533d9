package reaper

import (
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// harvest is what a claim found. It reads rows by hand and keeps little of them,
// since of all that the library does in Go this is done most often.
type harvest struct {
	now  time.Time // the transaction's start, by the database's clock
	jobs []*claimed

	skipped []Skip // jobs of a plan that were not claimed
	crowded bool   // another drain is at work at the place where this one asked

	block []claimed         // room for the next jobs
	kinds map[string]string // there are few
	owner string            // of the last job, and often of the next
}

// The room for jobs grows from block to block, so that it is sized by what is
// found and not by the limit.
const (
	firstBlock   = 16
	largestBlock = 512
)

// read takes the rows of sqlClaim. Texts are the same bytes in either format.
func (h *harvest) read(rows pgx.Rows) error {
	defer rows.Close()
	if err := checkLeaseType(rows); err != nil {
		return err
	}
	var now, leaseUntil pgtype.Timestamptz
	var attempts pgtype.Int8
	var maxAttempts int
	columns, most := []any{&now, nil, nil, nil, &leaseUntil, &attempts, &maxAttempts}, mostAttempts(rows)
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		texts := rows.RawValues()
		job := h.add()
		job.id, job.kind, job.owner = string(texts[1]), h.kindOf(texts[2]), h.ownerOf(texts[3])
		job.leaseUntil = fromServer(leaseUntil).UnixMicro()
		job.bumped = bump(int(attempts.Int64), most) // NULL is none
		job.spent = spent(int(attempts.Int64), maxAttempts)
	}
	h.now = now.Time
	return rows.Err()
}

// add makes room for a job.
func (h *harvest) add() *claimed {
	if len(h.block) == cap(h.block) {
		h.block = make([]claimed, 0, min(max(firstBlock, 2*cap(h.block)), largestBlock))
	}
	h.block = h.block[:len(h.block)+1]
	job := &h.block[len(h.block)-1]
	h.jobs = append(h.jobs, job)
	return job
}

// kindOf returns a kind, which is empty for NULL.
func (h *harvest) kindOf(text []byte) string {
	kind, known := h.kinds[string(text)]
	if known {
		return kind
	}
	if h.kinds == nil {
		h.kinds = map[string]string{}
	}
	kind = string(text)
	h.kinds[kind] = kind
	return kind
}

// ownerOf returns an owner, which is empty for NULL.
func (h *harvest) ownerOf(text []byte) string {
	if string(text) != h.owner {
		h.owner = string(text)
	}
	return h.owner
}

// checkLeaseType reports a lease's end without a time zone, which would be taken
// for one in the session's zone, and live leases for stale ones.
func checkLeaseType(rows pgx.Rows) error {
	if err := rows.Err(); err != nil { // such rows have no fields to ask for
		return err
	}
	for _, field := range rows.FieldDescriptions() {
		if field.Name == "lease_until" && field.DataTypeOID != pgtype.TimestamptzOID {
			return ErrLeaseType
		}
	}
	return nil
}

// mostAttempts is what the column of the attempts can hold.
func mostAttempts(rows pgx.Rows) int {
	for _, field := range rows.FieldDescriptions() {
		switch {
		case field.Name != "attempts":
		case field.DataTypeOID == pgtype.Int2OID:
			return math.MaxInt16
		case field.DataTypeOID == pgtype.Int4OID:
			return math.MaxInt32
		}
	}
	return math.MaxInt
}

// spent reports whether one more failed try uses the tries up. The sum that
// would say it plainly overflows at the integer's edge.
func spent(attempts, maxAttempts int) bool {
	return attempts >= maxAttempts || attempts+1 >= maxAttempts
}

// bump counts the failed try. At the edge of their column's type attempts stand
// still: it can hold no more, and such a job goes to the dead letters if it has a
// maximum at all.
func bump(attempts, mostAttempts int) int {
	if attempts >= mostAttempts {
		return attempts
	}
	return attempts + 1
}
