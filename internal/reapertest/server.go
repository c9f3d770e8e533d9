package reapertest

import (
	"fmt"
	command "os/exec"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// OwnServer is a server of the test's own, with the reference tables and all
// gates open, that keeps what it committed.
func OwnServer(t *testing.T) (*pgtest.Server, *pgxpool.Pool) {
	t.Helper()
	server, err := pgtest.Start(t.Context(), pgtest.ServerConfig{Fsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	pool, err := pgxpool.New(t.Context(), server.ConnString("postgres"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	Exec(t, pool, reaper.Schema)
	OpenGates(t, pool)
	return server, pool
}

// copyPrimary replaces the data of a killed server by those of another one that
// was killed, and has it start as a standby. It makes no file of this process's
// account, which may be another than the server's. The folder of the data stays,
// for by that the server finds the shared memory that it left. $1 and $2 are the
// folders of the two servers.
const copyPrimary = `set -e
cd "$2"
mv data/postgresql.conf .
rm -rf data/*
cp -a "$1/data/." data
mv postgresql.conf data
rm -f data/postmaster.pid
cp -a data/PG_VERSION data/standby.signal`

// WithStandby is a server of the test's own, with the reference tables and all
// gates open, and a hot standby that streams from it. A base backup of a server
// that runs is pg_basebackup's, which not every set of binaries has; killed, a
// server holds still for a copy.
func WithStandby(t *testing.T) (pool, standby *pgxpool.Pool) {
	t.Helper()
	primary, pool := OwnServer(t)
	source := fmt.Sprintf("host=%s port=5432 user=postgres", primary.Folder())
	server, err := pgtest.Start(t.Context(), pgtest.ServerConfig{
		Settings: map[string]string{"primary_conninfo": source},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	require.NoError(t, server.Kill())
	require.NoError(t, primary.Kill())

	script := command.CommandContext(t.Context(), "sh", "-c", copyPrimary, "sh", primary.Folder(), server.Folder())
	output, err := script.CombinedOutput()
	require.NoError(t, err, string(output))
	require.NoError(t, primary.Restart(t.Context()))
	require.NoError(t, server.Restart(t.Context()))

	pool.Reset()
	standby, err = pgxpool.New(t.Context(), server.ConnString("postgres"))
	require.NoError(t, err)
	t.Cleanup(standby.Close)
	require.True(t, One[bool](t, standby, `select pg_is_in_recovery()`))
	return pool, standby
}

// CaughtUp returns when a standby shows what its primary has committed.
func CaughtUp(t *testing.T, primary, standby *pgxpool.Pool) {
	t.Helper()
	position := One[string](t, primary, `select pg_current_wal_insert_lsn()::text`)
	require.Eventually(t, func() bool {
		return One[bool](t, standby, `select pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, position)
	}, Waiting, Tick)
}
