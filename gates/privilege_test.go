package gates_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Administrators grant what the documentation names and no more. If that is not
// enough, no apply ever runs; if less were, the fence would not be there.
func TestTableNeedsSelectAndUpdateOfAnyOneColumn(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		grant    string
		sqlState string
	}{
		"of updated_at":               {`select, update (updated_at)`, ""},
		"of another column":           {`select, update (updated_by)`, ""},
		"of all columns":              {`select, update`, ""},
		"of the read columns":         {`select (key, value), update (updated_at)`, ""},
		"only select":                 {`select`, "42501"},
		"only update":                 {`update`, "42501"},
		"without the values":          {`select (key), update (updated_at)`, "42501"},
		"insert and delete instead":   {`select, insert`, "42501"},
		"references is no substitute": {`select, references`, "42501"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			tx := as(t, pool, test.grant)

			values, err := gates.Table{}.Read(t.Context(), tx, gates.Keys())
			if test.sqlState == "" {
				require.NoError(t, err)
				require.Equal(t, gates.Values(open()), values)
				return
			}
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, test.sqlState, pgErr.Code)
			require.Nil(t, values)
		})
	}
}

// Whoever may change settings is granted what the documentation names: too little,
// and the reaper cannot be stopped when it must be.
func TestChangesNeedWhatTheirCommentsSay(t *testing.T) {
	t.Parallel()
	settings := gates.Table{}
	changes := map[string]struct {
		do    func(ctx context.Context, db gates.DB) error
		needs []string
	}{
		"OpenWindow": {func(ctx context.Context, db gates.DB) error {
			_, err := settings.OpenWindow(ctx, db, operator, time.Hour)
			return err
		}, []string{"select", "insert", "update"}},
		"CloseWindow": {func(ctx context.Context, db gates.DB) error {
			return settings.CloseWindow(ctx, db, operator)
		}, []string{"select", "insert", "update", "delete"}},
		"Set": {func(ctx context.Context, db gates.DB) error {
			return settings.Set(ctx, db, operator, enabled, "true")
		}, []string{"select", "insert", "update"}},
		"Unset": {func(ctx context.Context, db gates.DB) error {
			return settings.Unset(ctx, db, operator, dryRun)
		}, []string{"select", "update", "delete"}},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			set(t, pool, open())
			with := func(grants []string) error {
				tx := as(t, pool, strings.Join(grants, ", "))
				defer end(t, tx, true)
				return change.do(t.Context(), tx)
			}
			require.NoError(t, with(change.needs))
			for i, missing := range change.needs {
				var pgErr *pgconn.PgError
				require.ErrorAs(t, with(slices.Delete(slices.Clone(change.needs), i, i+1)), &pgErr, missing)
				require.Equal(t, "42501", pgErr.Code, missing)
			}
		})
	}
}

// as begins a transaction as a role of its own that has a grant on queue_config.
// The role goes with the transaction, which is never committed.
func as(t *testing.T, pool *pgxpool.Pool, grant string) pgx.Tx {
	t.Helper()
	tx := begin(t, pool)
	role := pgx.Identifier{pool.Config().ConnConfig.Database + "_reader"}.Sanitize()
	for _, sql := range []string{
		`create role ` + role,
		`grant ` + grant + ` on queue_config to ` + role,
		`set local role ` + role,
	} {
		_, err := tx.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return tx
}
