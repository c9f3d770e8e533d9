package pgtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// CI reads the version from this log. If it were wrong, CI would test one version twice
// and another not at all.
func TestTheServerOfTheTestsIsNamed(t *testing.T) {
	t.Parallel()

	var version string
	require.NoError(t, pgtest.Empty(t).QueryRow(t.Context(), `show server_version`).Scan(&version))
	t.Logf("the server of the tests is PostgreSQL %s", version)
}

// An example has no testing.TB and needs a database too.
func TestOpenMakesADatabaseAndCloseDropsIt(t *testing.T) {
	t.Parallel()

	viewer := pgtest.Empty(t)
	opened, err := pgtest.Open(t.Context())
	require.NoError(t, err)
	require.Zero(t, number(t, opened.Pool, `select count(*) from job_queue`))
	require.True(t, exists(t, viewer, opened.Name))

	require.NoError(t, opened.Close())
	require.False(t, exists(t, viewer, opened.Name))
}

// A test that does not release a connection would hang until the time limit of all tests,
// and the error would not name it.
func TestCloseReportsAConnectionThatIsStillAcquired(t *testing.T) {
	t.Parallel()

	viewer := pgtest.Empty(t)
	opened, err := pgtest.Open(t.Context())
	require.NoError(t, err)
	conn, err := opened.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()

	require.Error(t, opened.Close())
	require.False(t, exists(t, viewer, opened.Name))
}
