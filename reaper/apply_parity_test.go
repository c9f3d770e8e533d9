package reaper_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// parityRounds is the number of random queues that each parity test compares.
const parityRounds = 200

// The library and the reference disagree on some row, and a queue that moved
// from the one to the other behaves differently from then on.
func TestParity(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ mover deadletter.Mover }{
		"with the dead-letter table":      {deadletter.Table{}},
		"with the function that moves it": {deadletter.Function{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.WithOracle(t, pgtest.New(t))
			reapertest.Exec(t, pool, `alter table job_queue add column tags text[], add column cost numeric(30, 10)`)
			conn, err := pool.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			reapertest.Exec(t, conn, `set timezone = 'UTC'`)
			for round := range parityRounds {
				compare(t, conn.Conn(), reaper.Config{DeadLetter: test.mover}, rand.New(rand.NewPCG(1, uint64(round))))
			}
		})
	}
}

// compare runs both on the same rows, each in a savepoint of one transaction, so
// that now() is the same for both.
func compare(t *testing.T, conn *pgx.Conn, cfg reaper.Config, random *rand.Rand) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // it is only a test's rows
	fillQueue(t, tx, random)
	limit := 1 + random.IntN(25)

	want := aside(t, tx, func(tx pgx.Tx) []string {
		return []string{
			reapertest.One[string](t, tx, `select fn_job_reap_stale_leases_dry_run($1)::text`, limit),
			reapertest.One[string](t, tx, `select fn_job_reap_stale_leases_apply($1, $2)::text`, reapertest.Actor, limit),
		}
	})
	got := aside(t, tx, func(tx pgx.Tx) []string {
		r := reapertest.New(t, tx, cfg)
		dryRun, err := r.DryRun(t.Context(), limit)
		require.NoError(t, err)
		result, err := r.Apply(t.Context(), reapertest.Actor, limit)
		require.NoError(t, err)
		return []string{reapertest.JSON(t, dryRun), reapertest.JSON(t, result)}
	})
	for i, part := range []string{"dry run", "apply", "queue", "dead letters"} {
		require.Equal(t, normal(t, want[i]), normal(t, got[i]), part)
	}
}

// aside runs f in a savepoint that is rolled back, and adds both tables to what
// it returns.
func aside(t *testing.T, tx pgx.Tx, f func(pgx.Tx) []string) []string {
	t.Helper()
	savepoint, err := tx.Begin(t.Context())
	require.NoError(t, err)
	results := f(savepoint)
	results = append(results,
		reapertest.One[string](t, tx, `select coalesce(jsonb_agg(q order by job_id), '[]')::text from job_queue q`),
		reapertest.One[string](t, tx, `select coalesce(jsonb_agg(d order by job_id), '[]')::text from job_dead_letter d`))
	require.NoError(t, savepoint.Rollback(t.Context()))
	return results
}

// fillQueue makes a queue of up to 40 jobs in every state, and settings that are
// mostly open.
func fillQueue(t *testing.T, tx pgx.Tx, random *rand.Rand) {
	t.Helper()
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	var rows []string
	for i := range random.IntN(40) {
		rows = append(rows, fmt.Sprintf(`('kind-%d', %s, %s, %s, %s, %s, %s, %s)`,
			i%4,
			pick(`'leased'`, `'leased'`, `'leased'`, `'ready'`, `'retry_waiting'`, `'succeeded'`, `'dead_letter'`, `'cancelled'`),
			pick(`0`, `1`, `2`, `4`, `5`, `6`, `9`, `10`, `11`, `12`, `500`),
			pick(`0`, `1`, `3`, `5`, `12`, `1000`, `2147483647`, `-1`),
			pick(`null`, `''`, `'worker-1'`, `'wörker "2"'`, `E'o''brien\n\\'`),
			pick(`null`, `'infinity'`, `now()`, `now() + '1us'`, `now() - '1us'::interval`, `now() - '1s'::interval`,
				`now() - '90.5s'::interval`, `now() - '90.5s'::interval`, `now() - '3 months'::interval`,
				`'0001-01-01 00:00:00+00 BC'`, `'4713-11-25 12:00:00.000001+00 BC'`),
			pick(`null`, `'boom'`),
			pick(`null`, `'{a,"b c"}'`),
		))
	}
	if len(rows) > 0 {
		reapertest.Exec(t, tx, `insert into job_queue
			(job_kind, state, attempts, max_attempts, lease_owner, lease_until, last_error, tags)
			values `+strings.Join(rows, ","))
		reapertest.Exec(t, tx, `update job_queue set cost = 12345678901234567890.0123456789, payload = '{"n": 9007199254740993}'`)
	}
	reapertest.OpenGates(t, tx)
	if random.IntN(10) == 0 {
		reapertest.Exec(t, tx, pick(
			`delete from queue_config where key = 'queue.lease.reaper_enabled'`,
			`update queue_config set value = 'NO' where key = 'queue.job_substrate.enabled'`,
			`update queue_config set value = ' tRu ' where key = 'queue.lease.reaper_dry_run_only'`))
	}
	if base := pick(``, `0`, `1`, `7`, ` 10 `, `3600`, `315360000`); base != `` {
		reapertest.Exec(t, tx, `insert into queue_config (key, value) values ('queue.retry.backoff_base_sec', $1)`, base)
	}
}

// lastInstant is what the library's JSON has for any later time. The reference
// writes a year of five digits or more there, which RFC 3339 has no form for.
const lastInstant = "9999-12-31T23:59:59.999999Z"

// normal parses JSON and makes three things alike that may differ: how UTC is
// written, the random key of a dead letter, and an action's scheduled_at after the
// year 9999.
func normal(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "+00:00", "Z")))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	forget(value)
	return value
}

func forget(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			forget(element)
		}
	case map[string]any:
		if _, ok := value["dead_letter_id"]; ok {
			value["dead_letter_id"] = "some"
		}
		if _, ok := value["backoff_sec"]; ok && strings.Index(fmt.Sprint(value["scheduled_at"]), "-") > 4 {
			value["scheduled_at"] = lastInstant
		}
		for _, element := range value {
			forget(element)
		}
	}
}
