package deadletter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Inside a caller's transaction all of it is the caller's to keep or to drop, and
// an error must leave that transaction usable and as it was.
func TestInACallersTransactionEverythingIsASavepoint(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b", "c")
	reapertest.Exec(t, pool, `create table notes (n int)`)
	reapertest.Exec(t, pool, `delete from job_queue where job_kind = 'b'`)
	before := reapertest.Contents(t, pool)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `insert into notes values (1)`)

	require.Len(t, list(t, tx, deadletter.Filter{}, 10).Letters, 3)
	_, err := deadletter.Redrive(t.Context(), tx, deadletter.Store{}, operator, deadletter.Filter{IDs: []string{"x"}}, 10)
	require.ErrorIs(t, err, deadletter.ErrID)
	require.Equal(t, ids[:2], jobsOf(redriveAll(t, tx, deadletter.Filter{JobIDs: ids[:2]})))
	purged, err := deadletter.Purge(t.Context(), tx, deadletter.Store{}, 0, deadletter.PurgeConfig{Batch: 1, Unredriven: true})
	require.NoError(t, err)
	require.Equal(t, 1, purged.UnredrivenCount)
	require.Equal(t, 1, purged.JobCount)
	require.Equal(t, 1, reapertest.One[int](t, tx, `select count(*) from notes`))

	require.Equal(t, before, reapertest.Contents(t, pool))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, before, reapertest.Contents(t, pool))
}

// A deferred constraint of the caller's is the caller's business until the
// caller commits.
func TestACallersConstraintsStayDeferred(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a")
	reapertest.Exec(t, pool, `create table parents (id int primary key);
		create table children (id int references parents deferrable initially deferred)`)
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `insert into children values (1)`)

	require.Equal(t, ids, jobsOf(redriveAll(t, tx, deadletter.Filter{})))

	reapertest.Exec(t, tx, `insert into children values (2)`)
	reapertest.Exec(t, tx, `insert into parents values (1), (2)`)
	require.NoError(t, tx.Commit(t.Context()))
	reapertest.RequireAgreement(t, pool)
}
