package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// NewJob is a job to be done.
type NewJob struct {
	Kind        string
	Payload     any // as JSON; nil: {}
	MaxAttempts int // default 5
}

// rowQuerier is a pool, a connection or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Enqueue adds a job that is due at once and returns its id. In a transaction the
// job is there when that commits, together with what it is about.
func Enqueue(ctx context.Context, db rowQuerier, job NewJob) (id string, err error) {
	payload := []byte(`{}`)
	if job.Payload != nil {
		if payload, err = json.Marshal(job.Payload); err != nil {
			return "", fmt.Errorf("queue: enqueue: %w", err)
		}
	}
	err = db.QueryRow(ctx, sqlEnqueue, job.Kind, payload, cmp.Or(job.MaxAttempts, 5)).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("queue: enqueue: %w", err)
	}
	return id, nil
}
