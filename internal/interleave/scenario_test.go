package interleave_test

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// scenario is who meets, and over which rows.
type scenario struct {
	name string
	cast func(ctx context.Context, w *world) ([]participant, error)

	mode     pgx.QueryExecMode // 0: each statement in one exchange
	tables   string            // DDL of the scenario's own
	rows     string            // what is there before
	attempts map[int]int       // of the jobs, by their numbers
	settings gates.Values      // other than open gates
	rejected []string          // job ids
	waits    bool              // applies may wait for the operator

	whole, cuts int // how many schedules there are, without a cut and with one
}

// of makes a cast that is the same each time.
func of(cast ...participant) func(context.Context, *world) ([]participant, error) {
	return func(context.Context, *world) ([]participant, error) { return cast, nil }
}

// unbounded stands for a number of schedules that nobody has counted.
const unbounded = 1 << 30

var scenarios = slices.Concat(reaping, governing, letters, others)

// reaping are those of reapers and workers.
var reaping = []scenario{
	{
		name: "reapers", whole: 20, cuts: 136,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
	{
		name: "described", whole: unbounded, cuts: unbounded, mode: pgx.QueryExecModeDescribeExec,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
	{
		name: "batches", whole: 35, cuts: 248,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(2, reaper.Config{}), applies(2, reaper.Config{OnApply: reapertest.NoHook})),
	},
	{
		name: "renewal", whole: 17, cuts: 124,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), changes(sqlRenew, lease{job1, "owner-1", 0}, true)),
	},
	{
		name: "completion", whole: 17, cuts: 124,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), changes(sqlEnd, lease{job2, "owner-2", 4}, true)),
	},
	{
		name: "claim", whole: 10, cuts: 66,
		rows: stale + ready, attempts: map[int]int{1: 0, 2: 4, 3: 1, 4: 0, 5: 2},
		cast: of(applies(10, reaper.Config{}), claimsAndRenews("1 hour")),
	},
	{
		name: "claim-brief", whole: 10, cuts: 66,
		rows: stale + ready, attempts: map[int]int{1: 0, 2: 4, 3: 1, 4: 0, 5: 2},
		cast: of(applies(10, reaper.Config{}), claimsAndRenews("1 microsecond")),
	},
	{
		name: "drains", whole: unbounded, cuts: unbounded,
		rows: equal, attempts: equalAttempts,
		cast: of(drains(1), drains(1), changes(sqlRenew, lease{job3, "owner-3", 1}, false)),
	},
}

// governing are those of a reaper and an operator who changes the settings.
var governing = []scenario{
	{
		name: "gate", whole: 19, cuts: 170,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{}), sets(gates.ReaperEnabled, "false")),
	},
	{
		name: "gate-hook", whole: 24, cuts: 226,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{OnApply: reapertest.NoHook}), sets(gates.ReaperEnabled, "false")),
	},
	{
		name: "window-opens", whole: 15, cuts: 110,
		rows: stale + sqlDryRunOnly, attempts: staleAttempts, waits: true,
		settings: gates.Values{gates.DryRunOnly: "true"},
		cast:     of(applies(10, reaper.Config{}), opensWindow(time.Hour)),
	},
	{
		name: "window-ends", whole: 19, cuts: 170,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{}), opensWindow(time.Microsecond)),
	},
	{
		name: "window-closes", whole: 19, cuts: 170,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{}), closesWindow()),
	},
}

// letters are those of who looks after the dead letters.
var letters = []scenario{
	{
		name: "redrive", whole: 84, cuts: 656,
		rows: stale + dead, attempts: withDead,
		cast: of(redrives(), applies(10, reaper.Config{})),
	},
	{
		name: "redrives", whole: 130, cuts: 948,
		rows: dead, attempts: withDead,
		cast: of(redrives(), redrives()),
	},
	{
		name: "purge", whole: 997, cuts: 7320,
		rows: dead, attempts: withDead,
		cast: of(purges(), redrives()),
	},
}

// others are the rarer ways of a reaper.
var others = []scenario{
	{
		name: "plan", whole: 20, cuts: 136,
		rows: stale, attempts: staleAttempts,
		cast: func(ctx context.Context, w *world) ([]participant, error) {
			plan, err := newReaper(w.pool, reaper.Config{}).DryRun(ctx, 10)
			return []participant{appliesPlan(plan), applies(10, reaper.Config{})}, err
		},
	},
	{
		name: "isolating", whole: unbounded, cuts: unbounded,
		rows: stale, attempts: staleAttempts, rejected: []string{job1},
		tables: `alter table job_queue add constraint rejects check (payload <> '{"N":1}' or state <> 'retry_waiting');`,
		cast:   of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
	{
		name: "caller", whole: 110, cuts: 846,
		rows: stale, attempts: staleAttempts,
		cast: of(appliesInside(10, true), applies(10, reaper.Config{})),
	},
	{
		name: "caller-rolls-back", whole: 110, cuts: 846,
		rows: stale, attempts: staleAttempts,
		cast: of(appliesInside(10, false), applies(10, reaper.Config{})),
	},
	{
		name: "twins", whole: 20, cuts: 136,
		tables: sqlPartitioned, rows: twins, attempts: map[int]int{1: 0, 2: 0, 3: 4, 4: 4},
		cast: of(applies(10, reaper.Config{}), changes(sqlEnd, lease{job1, "owner-2", 0}, true)),
	},
	{
		name: "twins-function", whole: 44, cuts: 296,
		tables: sqlFunction, rows: deadTwins, attempts: map[int]int{1: 4, 2: 2},
		cast: of(
			applies(10, reaper.Config{DeadLetter: deadletter.Function{}}),
			applies(10, reaper.Config{DeadLetter: deadletter.Function{}}),
		),
	},
}
