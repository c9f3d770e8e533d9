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

// OwnServer starts a server for one test, with the reference tables and all gates open. Its
// commits survive a kill.
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

// copyPrimary replaces the data of a killed server, in folder $2, by the data of another
// killed server, in folder $1, and makes it a standby. It copies files instead of making
// new ones, so that they belong to the account of the server. It keeps the data folder
// itself, by which the server finds the shared memory that it left.
const copyPrimary = `set -e
cd "$2"
mv data/postgresql.conf .
rm -rf data/*
cp -a "$1/data/." data
mv postgresql.conf data
rm -f data/postmaster.pid
cp -a data/PG_VERSION data/standby.signal`

// WithStandby starts a server for one test, as OwnServer, and a hot standby that streams
// from it. It copies the data of the killed server, since not all binaries include
// pg_basebackup.
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

// CaughtUp returns when a standby has replayed all commits of its primary.
func CaughtUp(t *testing.T, primary, standby *pgxpool.Pool) {
	t.Helper()
	position := One[string](t, primary, `select pg_current_wal_insert_lsn()::text`)
	require.Eventually(t, func() bool {
		return One[bool](t, standby, `select pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, position)
	}, Waiting, Tick)
}
