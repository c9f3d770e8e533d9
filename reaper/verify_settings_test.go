package reaper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// source is one of the caller's own.
type source func(ctx context.Context, tx pgx.Tx) error

func (s source) Read(ctx context.Context, tx pgx.Tx, _ []string) (gates.Values, error) {
	return gates.Values{}, s(ctx, tx)
}

// A source of the caller's may do anything, and must not keep Verify from saying
// what else is wrong. One that locks what it reads is sound, and cannot be tried
// in a read-only transaction.
func TestVerifyOutlivesASourceThatFails(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		source source
		codes  []string
	}{
		"that locks": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select from queue_config for share`)
			return err
		}, []string{reaper.CodeTableMissing}},
		"whose table is not there": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select from nothing`)
			return err
		}, []string{reaper.CodeSettingInvalid, reaper.CodeTableMissing}},
		"that swallows its error": {func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `select from nothing`)
			return nil
		}, []string{reaper.CodeTableMissing}},
		"that panics": {func(context.Context, pgx.Tx) error { panic("no") },
			[]string{reaper.CodeSettingInvalid, reaper.CodeTableMissing}},
		"that fails": {func(context.Context, pgx.Tx) error { return errors.New("no") },
			[]string{reaper.CodeSettingInvalid, reaper.CodeTableMissing}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `drop table job_dead_letter`)

			report, err := reapertest.New(t, pool, reaper.Config{Gates: test.source}).Verify(t.Context())

			require.NoError(t, err)
			var codes []string
			for _, problem := range report.Problems {
				codes = append(codes, problem.Code)
			}
			require.ElementsMatch(t, test.codes, codes)
		})
	}
}

// A report in another order each time cannot be compared with yesterday's.
func TestVerifyReportsSettingsInTheirOrder(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `delete from queue_config`)
	for _, key := range gates.Keys() {
		_, err := pool.Exec(t.Context(), `insert into queue_config (key, value) values ($1, 'treu')`, key)
		require.NoError(t, err)
	}

	require.Equal(t, gates.Keys(), objects(t, pool))
}

// objects are what the problems are about.
func objects(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	var objects []string
	for _, problem := range reapertest.Verify(t, pool, reaper.Config{}).Problems {
		objects = append(objects, problem.Object)
	}
	return objects
}

// A copy of the settings that is missing, or may not be locked, fails every apply.
func TestVerifyChecksACopyOfTheSettings(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	cfg := reaper.Config{Gates: gates.Replica{Name: pgx.Identifier{"copied"}}}
	require.Equal(t, reaper.CodeTableMissing, reapertest.OnlyProblem(t, pool, cfg).Code)

	reapertest.Exec(t, pool, `create table copied as table queue_config`)

	require.Equal(t, reaper.CodeKeyMissing, reapertest.OnlyProblem(t, pool, cfg).Code)
}
