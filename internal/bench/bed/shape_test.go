package bed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// What dead letters cost is measured on queues that have as many exhausted jobs as
// they say.
func TestTheShareOfExhaustedJobs(t *testing.T) {
	t.Parallel()
	server, err := bed.Start(t.Context(), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })

	for _, shape := range []bed.Shape{
		{Rows: 500, Stale: 200, Exhausted: 0},
		{Rows: 500, Stale: 200, Exhausted: 10},
		{Rows: 500, Stale: 200, Exhausted: 100},
		{Rows: 500, Stale: 200, Exhausted: 10, Dense: true},
		{Rows: 200, Stale: 200, Exhausted: 100},
	} {
		q, err := server.Clone(t.Context(), shape.Fixture())
		require.NoError(t, err)
		pool, err := q.Connect(t.Context())
		require.NoError(t, err)
		var stale, exhausted int
		require.NoError(t, pool.QueryRow(t.Context(), `
			select count(*), count(*) filter (where attempts + 1 >= max_attempts)
			from job_queue
			where lease_until < now()`).Scan(&stale, &exhausted))
		require.Equal(t, shape.Stale, stale, fmt.Sprint(shape))
		require.Equal(t, shape.Stale*shape.Exhausted/100, exhausted, fmt.Sprint(shape))
	}
}
