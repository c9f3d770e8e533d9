// Package jobs has handlers to be replaced by your own. They only take their
// time, and show the places where a handler's work goes.
package jobs

import (
	"context"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
)

// The kinds.
const (
	SendInvoice = "send_invoice"
	ResizeImage = "resize_image"
	ChargeCard  = "charge_card"
)

// Schema is the table that the handlers write their receipts to. It may be applied
// again.
//
//go:embed schema.sql
var Schema string

var errDeclined = errors.New("jobs: the card was declined")

// Payload is what a job is about.
type Payload struct {
	TakesMS  int `json:"takes_ms"`           // how long a try takes, in milliseconds
	Declined int `json:"declined,omitempty"` // how many tries fail before one succeeds
}

// Handlers returns a handler for each kind.
func Handlers() map[string]work.Handler {
	return map[string]work.Handler{SendInvoice: handle, ResizeImage: handle, ChargeCard: handle}
}

// handle takes its time, fails as often as the payload says, and leaves a receipt.
func handle(ctx context.Context, job queue.Job) (work.Done, error) {
	var payload Payload
	if err := json.Unmarshal(job.Payload, &payload); err != nil {
		return work.Done{}, fmt.Errorf("jobs: payload: %w", err)
	}
	if err := toil(ctx, time.Duration(payload.TakesMS)*time.Millisecond); err != nil {
		return work.Done{}, err
	}
	if job.Attempts < payload.Declined {
		return work.Done{}, errDeclined
	}
	return work.Done{Effects: receipt(job)}, nil
}

// toil stands for the work, and stops when ctx ends.
func toil(ctx context.Context, takes time.Duration) error {
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sqlReceipt needs no index.
//
//	$1 job id  uuid
//	$2 owner   text
const sqlReceipt = `-- jobs.receipt
insert into worker_receipt (job_id, done_by)
values ($1, $2)`

// receipt is written with the completion, so there is exactly one for each job
// that succeeded, whatever died on the way.
func receipt(job queue.Job) queue.Effects {
	return func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlReceipt, job.ID, job.Owner); err != nil {
			return fmt.Errorf("jobs: receipt: %w", err)
		}
		return nil
	}
}
