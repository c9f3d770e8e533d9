package gates_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A copy that is read without a lock is no fence: what copies a closed gate would not wait for
// the applies in progress.
func TestReplicaReadsAndLocksTheCopy(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `create table copied (like queue_config including all)`)
	reapertest.Exec(t, pool, `insert into copied (key, value) values ($1, 'true')`, gates.ReaperEnabled)
	tx := reapertest.Begin(t, pool)

	values, err := gates.Replica{Name: pgx.Identifier{"copied"}}.Read(t.Context(), tx, gates.Keys())

	require.NoError(t, err)
	require.Equal(t, gates.Values{gates.ReaperEnabled: "true"}, values)
	_, err = pool.Exec(t.Context(), `select from copied for update nowait`)
	require.Error(t, err)
	require.NoError(t, gates.Replica{}.Validate())
	require.Error(t, gates.Replica{Name: pgx.Identifier{"a", "b", "c"}}.Validate())
}
