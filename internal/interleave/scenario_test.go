package interleave_test

import (
	"context"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// scenario is who meets, and over which rows.
type scenario struct {
	name string
	cast func(ctx context.Context, w *world) ([]participant, error)

	tables   string       // DDL of the scenario's own
	rows     string       // what is there before
	attempts map[int]int  // of the jobs, by their numbers
	settings gates.Values // other than open gates
	rejected []string     // job ids
	waits    bool         // applies may wait for the operator

	whole, cuts int // how many schedules there are, without a cut and with one
}

// of makes a cast that is the same each time.
func of(cast ...participant) func(context.Context, *world) ([]participant, error) {
	return func(context.Context, *world) ([]participant, error) { return cast, nil }
}

const (
	job1 = "00000000-0000-0000-0000-000000000001"
	job2 = "00000000-0000-0000-0000-000000000002"
	job3 = "00000000-0000-0000-0000-000000000003"
	job4 = "00000000-0000-0000-0000-000000000004"
)

// stale are three jobs whose leases have ended, the second with its attempts used up, and
// one whose lease is live.
const stale = `
insert into job_queue (job_id, job_kind, payload, state, attempts, lease_owner, lease_until) values
	('` + job1 + `', 'mail', '{"N":1}', 'leased', 0, 'owner-1', now() - interval '9 min'),
	('` + job2 + `', 'mail', '{"N":2}', 'leased', 4, 'owner-2', now() - interval '8 min'),
	('` + job3 + `', 'mail', '{"N":3}', 'leased', 1, 'owner-3', now() - interval '7 min'),
	('` + job4 + `', 'mail', '{"N":4}', 'leased', 0, 'owner-4', now() + interval '1 hour');`

var staleAttempts = map[int]int{1: 0, 2: 4, 3: 1, 4: 0}

var scenarios = []scenario{
	{
		name: "reapers", rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
}
