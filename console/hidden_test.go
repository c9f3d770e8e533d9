package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
)

// A mover of the service's own may answer with the job that it has stored.
func TestWhatAMoverAnswersIsHidden(t *testing.T) {
	t.Parallel()
	for show, want := range map[bool]string{false: "payload_hidden", true: "4111-1"} {
		pool := filled(t)
		cfg := shop(pool)
		cfg.ShowPayloads = show
		cfg.Databases[0].Reaper.DeadLetter = deadletter.MoverFunc(
			func(_ context.Context, _ pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
				receipts := make([]deadletter.Receipt, len(batch.Jobs))
				for i, job := range batch.Jobs {
					receipts[i] = deadletter.Receipt{JobID: job.ID, Document: json.RawMessage(`{"card":"4111-1"}`)}
				}
				return receipts, nil
			})
		h := handler(t, cfg)
		_, form := planned(t, h)
		got := post(t, h, "/shop/plan", form, "Accept", asJSON)
		require.Equal(t, show, containsCard(got.body), got.body)
		require.Contains(t, got.body, want)
	}
}

// A purge is several transactions. What the first ones removed is gone, whatever became of
// the last.
func TestAPurgeThatFailsSaysWhatIsGone(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	_, err := pool.Exec(t.Context(), `update job_dead_letter set redriven_at = now() - interval '2 days' where job_kind = 'charge_card';
		alter table job_queue rename to gone`)
	require.NoError(t, err)
	form := url.Values{"older": {"1d"}, "unredriven": {"yes"}, "word": {"purge"}}
	rows, err := pool.Query(t.Context(), "select dead_letter_id::text from job_dead_letter")
	require.NoError(t, err)
	form["id"], err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)

	got := post(t, h, "/shop/purge", form)

	require.Equal(t, http.StatusBadGateway, got.StatusCode, got.body)
	require.Contains(t, got.body, "15 dead letters were removed.")
}
