package reaper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// leaseColumn is a mapping whose lease's end is called lease.
var leaseColumn = reaper.Config{Queue: reaper.Table{Columns: reaper.Columns{LeaseUntil: "lease"}}}

// indexFaults are indexes that do not serve the claim, or serve it with other rows.
var indexFaults = map[string]fault{
	"no index":                      {sql: `drop index job_queue_lease_until_idx`, code: reaper.CodeIndexMissing, object: `"job_queue"."lease_until"`},
	"an index on the state alone":   {sql: `drop index job_queue_lease_until_idx; create index on job_queue (state)`, code: reaper.CodeIndexMissing, object: `"job_queue"."lease_until"`},
	"an index on another state":     {sql: `drop index job_queue_lease_until_idx; create index on job_queue (lease_until) where state = 'running'`, code: reaper.CodeIndexMissing, object: `"job_queue"."lease_until"`},
	"an index that the kind leads":  {sql: `drop index job_queue_lease_until_idx; create index on job_queue (job_kind, lease_until)`, code: reaper.CodeIndexMissing, object: `"job_queue"."lease_until"`},
	"an index over finished jobs":   {sql: `drop index job_queue_lease_until_idx; create index on job_queue (lease_until)`, code: reaper.CodeIndexMissing, object: `"job_queue"."lease_until"`},
	"an index that names the lease": {sql: `alter table job_queue rename lease_until to lease; drop index job_queue_lease_until_idx; create index lease_idx on job_queue (state)`, code: reaper.CodeIndexMissing, object: `"job_queue"."lease"`, cfg: leaseColumn},
}

// Each pass of such a reaper reads more and more rows, until it times out.
func TestVerifyFindsIndexesThatDoNotServe(t *testing.T) {
	t.Parallel()
	requireFoundAndFixed(t, indexFaults)
}

// A view has no index of its own, so the statement that makes one would fail.
func TestVerifyOffersNoIndexOnAView(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `drop index job_queue_lease_until_idx; alter table job_queue drop constraint job_queue_pkey;
		alter table job_queue rename to jobs; create view job_queue as table jobs`)

	problem := reapertest.OnlyProblem(t, pool, reaper.Config{})

	require.Equal(t, reaper.CodeIndexMissing, problem.Code)
	require.Empty(t, problem.Fix)
}

// Somebody runs Verify in an outage, when a million leases are stale. It must not read them
// all.
func TestVerifyReadsNoLeaseThatEnds(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		select 'a', 'leased', now() - interval '1 hour' from generate_series(1, 5000);
		insert into job_queue (job_kind, state) values ('a', 'leased')`)
	reapertest.Exec(t, pool, `analyze job_queue`)
	tx := reapertest.Begin(t, pool)

	report, err := reapertest.New(t, tx, reaper.Config{}).Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Equal(t, reaper.CodeLeaseEndless, report.Problems[0].Code)
	require.Less(t, reapertest.One[int](t, tx, `select seq_tup_read + idx_tup_fetch
		from pg_stat_xact_user_tables where relname = 'job_queue'`), 100)
}
