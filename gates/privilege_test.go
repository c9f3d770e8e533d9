package gates_test

import (
	"testing"

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
