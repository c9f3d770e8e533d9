package deadletter_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

const (
	wholeQueue = `grant select on job_queue to @`
	insertDead = `grant insert on job_dead_letter to @`
)

// Administrators grant what the documentation names and no more. If that is not
// enough, dead jobs stay in the queue for ever.
func TestMoversNeedTheDocumentedPrivileges(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mover  deadletter.Mover
		grants []string // @ is the role
		denied bool
	}{
		"table, as documented": {
			deadletter.Table{}, []string{wholeQueue, insertDead, `grant select (job_id, dead_letter_id) on job_dead_letter to @`}, false,
		},
		"table, all of it":          {deadletter.Table{}, []string{wholeQueue, insertDead, `grant select on job_dead_letter to @`}, false},
		"table, without its keys":   {deadletter.Table{}, []string{wholeQueue, insertDead}, true},
		"table, without insert":     {deadletter.Table{}, []string{wholeQueue, `grant select on job_dead_letter to @`}, true},
		"table, not a whole queue":  {deadletter.Table{}, []string{`grant select (job_id, job_kind, attempts, max_attempts) on job_queue to @`, insertDead, `grant select on job_dead_letter to @`}, true},
		"function, with its tables": {deadletter.Function{}, []string{`grant select, update on job_queue to @`, `grant select, insert on job_dead_letter to @`, `grant execute on function fn_job_move_to_dead_letter to @`}, false},
		"function, as its definer":  {deadletter.Function{}, []string{`alter function fn_job_move_to_dead_letter security definer`, `grant select (job_id) on job_queue to @`, `grant execute on function fn_job_move_to_dead_letter to @`}, false},
		"function, without execute": {deadletter.Function{}, []string{`grant select, update on job_queue to @`, `grant select, insert on job_dead_letter to @`}, true},
		"function, not its tables":  {deadletter.Function{}, []string{wholeQueue, `grant execute on function fn_job_move_to_dead_letter to @`}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Exec(t, pool, oracle.Functions)
			reapertest.Exec(t, pool, `revoke execute on function fn_job_move_to_dead_letter from public`)
			ids := enqueue(t, pool, "invoice")
			tx := reapertest.Begin(t, pool)
			batch := claim(t, tx, reference(), ids)
			become(t, pool, tx, test.grants)

			receipts, err := test.mover.Move(t.Context(), tx, batch)
			if test.denied {
				var pgErr *pgconn.PgError
				require.ErrorAs(t, err, &pgErr)
				require.Equal(t, "42501", pgErr.Code)
				return
			}
			require.NoError(t, err)
			require.Len(t, receipts, 1)
			require.False(t, receipts[0].Refused)
		})
	}
}

// become makes a role with some grants and goes on as that role. The role goes
// with the transaction, which is never committed.
func become(t *testing.T, pool *pgxpool.Pool, tx pgx.Tx, grants []string) {
	t.Helper()
	role := pgx.Identifier{pool.Config().ConnConfig.Database + "_mover"}.Sanitize()
	reapertest.Exec(t, tx, `create role `+role)
	for _, grant := range grants {
		reapertest.Exec(t, tx, strings.ReplaceAll(grant, "@", role))
	}
	reapertest.Exec(t, tx, `set local role `+role)
}
