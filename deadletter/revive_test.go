package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Ten thousand jobs that come back at once meet the service that they died of.
func TestRedriveSpreadsJobsEvenly(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, many(5)...)
	reapertest.Exec(t, pool, `delete from job_queue where job_kind in ('kind-0', 'kind-3')`)
	reapertest.Exec(t, pool, `update job_queue set state = 'ready' where job_kind = 'kind-1'`) // this one is left alone

	result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{Spread: time.Hour}, operator, deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.Equal(t, []string{ids[0], ids[2], ids[3], ids[4]}, jobsOf(result))
	require.Equal(t, []string{"00:00:00", "00:15:00", "00:30:00", "00:45:00"}, reapertest.Column(t, pool, `
select (scheduled_at - $1::timestamptz)::text from job_queue where state = 'retry_waiting' order by job_kind`, result.RedrivenAt))
}

// A spread that is longer than all time must not wrap into the past.
func TestTheLongestSpreadHolds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	bury(t, pool, many(3)...)

	result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{Spread: 1<<63 - 1}, operator, deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.Equal(t, 3, result.RedrivenCount)
	require.Equal(t, "0 97 195", strings.Join(reapertest.Column(t, pool, `
select round(extract(epoch from scheduled_at - $1::timestamptz) / 86400 / 365.25)::text from job_queue order by job_kind`, result.RedrivenAt), " "))
}
