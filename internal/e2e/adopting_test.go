package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

var shop = reaper.Config{
	Queue: reaper.Table{
		Name: pgx.Identifier{"shop", "jobs"},
		Columns: reaper.Columns{
			JobID: "id", JobKind: "type", State: "status", Attempts: "tries", MaxAttempts: "max_tries",
			ScheduledAt: "run_at", LeaseOwner: "locked_by", LeaseUntil: "locked_until", LastError: "failure",
		},
		States: reaper.States{Leased: "running", RetryWaiting: "retryable", DeadLetter: "discarded"},
	},
	Gates:      gates.Table{Name: pgx.Identifier{"shop", "settings"}},
	DeadLetter: deadletter.Table{Name: pgx.Identifier{"shop", "dead_jobs"}},
}

func check(ctx context.Context, pool *pgxpool.Pool) error {
	r, err := reaper.New(pool, shop)
	if err != nil {
		return err
	}
	report, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	fmt.Print(report)
	return nil
}

func look(ctx context.Context, r *reaper.Reaper) error {
	dryRun, err := r.DryRun(ctx, 100)
	if err != nil {
		return err
	}
	fmt.Println(dryRun.StaleLeaseCount, "stale leases")
	for _, job := range dryRun.Jobs {
		fmt.Println(job.JobID, job.JobKind, job.OverdueSeconds, "s overdue:", job.WouldAction)
	}
	return nil
}

// An adopter copies the page's code, and it does not compile.
func TestTheAdoptersGoIsCompiled(t *testing.T) {
	t.Parallel()
	var source []byte
	for _, name := range []string{"adopting_test.go", "adopting_shapes_test.go"} {
		file, err := os.ReadFile(name)
		require.NoError(t, err)
		source = append(source, file...)
	}

	for _, block := range reapertest.Fenced(t, "docs/adopting.md", "go") {
		require.Contains(t, string(source), block)
	}
}

// The page, from its first block to its last, over its own table: what it
// promises along the way must be so.
func TestTheAdoptersPageWorks(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	ctx := t.Context()
	blocks := reapertest.Fenced(t, "docs/adopting.md", "sql")
	require.Len(t, blocks, 11, "those after the eighth are of other queues")
	login := reapertest.One[string](t, pool, `select 'shop_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+login+` login`)
	t.Cleanup(func() { reapertest.DropRole(t, pool, login) })
	asRole := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = login })
	r := reapertest.New(t, asRole, shop)

	reapertest.Exec(t, pool, blocks[0]) // the queue
	require.NoError(t, check(ctx, asRole))
	require.NotEmpty(t, reapertest.Verify(t, asRole, shop).Problems)
	for _, block := range blocks[1:4] { // index, tables, grants
		reapertest.Exec(t, pool, strings.ReplaceAll(block, "shop_reaper", login))
	}
	require.Empty(t, reapertest.Verify(t, asRole, shop).Problems)
	require.NoError(t, look(ctx, r))
	refused, err := r.Apply(ctx, reapertest.Actor, 10)
	require.NoError(t, err)
	require.True(t, refused.Refused)

	reapertest.Exec(t, pool, blocks[4]) // the gates
	reapertest.Exec(t, pool, `insert into shop.jobs (type) values ('ship')`)
	var id, tries int
	require.NoError(t, pool.QueryRow(ctx, blocks[5], "claim-1").Scan(&id, &tries))
	require.EqualValues(t, 1, touched(t, pool, blocks[6], id, "claim-1", tries)) // renew
	require.Empty(t, reapertest.Apply(t, r, 10).Actions)
	reapertest.Exec(t, pool, `update shop.jobs set locked_until = now() - interval '1 second'`)
	require.Equal(t, 1, reapertest.Apply(t, r, 10).ResetCount)
	require.Zero(t, touched(t, pool, blocks[6], id, "claim-1", tries))
	require.Zero(t, touched(t, pool, blocks[7], id, "claim-1", tries)) // complete

	reapertest.Exec(t, pool, `update shop.jobs set run_at = now()`)
	require.NoError(t, pool.QueryRow(ctx, blocks[5], "claim-2").Scan(&id, &tries))
	require.Equal(t, 1, tries)
	require.EqualValues(t, 1, touched(t, pool, blocks[7], id, "claim-2", tries))
}

func touched(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) int64 {
	t.Helper()
	tag, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
	return tag.RowsAffected()
}

// An adopter's queue, whose dead jobs come back under its own names, states and
// types, and whether its rows are there or were cleaned up.
func TestTheAdoptersDeadJobsComeBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	blocks := reapertest.Fenced(t, "docs/adopting.md", "sql")
	reapertest.Exec(t, pool, blocks[0])
	reapertest.Exec(t, pool, blocks[2])
	reapertest.Exec(t, pool, `insert into shop.jobs (type, status, tries, args, locked_by, locked_until, failure)
		select 'ship', 'running', 4, jsonb_build_object('n', i), 'w', now() - interval '1 minute', 'f' from generate_series(1, 4) i`)
	cfg := shop
	cfg.Gates = reapertest.OpenGate
	require.Equal(t, 4, reapertest.Apply(t, reapertest.New(t, pool, cfg), 10).DeadLetterCount)
	reapertest.Exec(t, pool, `delete from shop.jobs where id % 2 = 0`)

	store := deadletter.Store{
		Table: deadletter.Table{Name: pgx.Identifier{"shop", "dead_jobs"}}, Queue: shop.Queue.DeadLetterQueue(),
	}
	result, err := deadletter.Redrive(t.Context(), pool, store, "operator", deadletter.Filter{Kinds: []string{"ship"}}, 10)

	require.NoError(t, err)
	require.Equal(t, 4, result.RedrivenCount)
	for i, job := range result.Redriven {
		require.Equal(t, i%2 == 1, job.Rebuilt)
	}
	require.Equal(t, 4, reapertest.One[int](t, pool, `select count(*) from shop.jobs
		where status = 'retryable' and tries = 0 and max_tries = 5 and run_at <= now() and locked_by is null and locked_until is null
		and failure is null and args = jsonb_build_object('n', id) and type = 'ship'`))
	var id, tries int
	require.NoError(t, pool.QueryRow(t.Context(), blocks[5], "claim-1").Scan(&id, &tries), "a worker claims it at once")
}
