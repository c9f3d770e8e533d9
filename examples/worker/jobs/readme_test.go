package jobs_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
)

var _ work.Handler = sendInvoice

func sendInvoice(ctx context.Context, job queue.Job) (work.Done, error) {
	pdf, err := render(ctx, job.Payload) // stops when ctx ends: the lease is lost, or the worker is being stopped
	if err != nil {
		return work.Done{}, err // counts an attempt; the last one makes a dead letter
	}
	return work.Done{Effects: func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into invoice (job_id, pdf) values ($1, $2)`, job.ID, pdf)
		return err // commits with the job's completion, or not at all
	}}, nil
}

func render(context.Context, json.RawMessage) ([]byte, error) { return []byte("%PDF"), nil }

// Whoever copies the README's handler finds that it does not compile.
func TestTheREADMEsGoIsCompiled(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)

	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Contains(t, string(source), string(block[1]))
	}
}
