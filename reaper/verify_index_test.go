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
