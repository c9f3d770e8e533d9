package pgtest_test

import (
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// With Fsync, commits before a crash must be there after it. Otherwise tests of recovery
// prove nothing.
func TestRestartAfterKillFindsWhatWasCommitted(t *testing.T) {
	t.Parallel()

	server := start(t, pgtest.ServerConfig{Fsync: true})
	pool := connect(t, server)
	_, err := pool.Exec(t.Context(), `create table kept as select 1 as n`)
	require.NoError(t, err)

	require.NoError(t, server.Kill())
	require.Error(t, pool.Ping(t.Context()), "the server runs")
	require.NoError(t, server.Kill(), "a second time")
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, 1, number(t, connect(t, server), `select n from kept`))
}

// A pool must also work after an orderly restart, such as that of an upgrade.
func TestRestartShutsDownAServerThatRuns(t *testing.T) {
	t.Parallel()

	server := start(t, pgtest.ServerConfig{})
	pool := connect(t, server)
	_, err := pool.Exec(t.Context(), `create table kept as select pg_postmaster_start_time() as at`)
	require.NoError(t, err)

	require.NoError(t, server.Restart(t.Context()))
	again := connect(t, server)
	require.Equal(t, 1, number(t, again, `select count(*) from kept where at < pg_postmaster_start_time()`))
}

// A benchmark is worth nothing if its durability is not as configured.
func TestStartAppliesItsConfiguration(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		config pgtest.ServerConfig
		want   map[string]string
	}{
		"by default nothing is durable and there is no TCP port": {
			config: pgtest.ServerConfig{},
			want: map[string]string{
				"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
				"listen_addresses": "", "max_connections": "300",
			},
		},
		"Fsync makes all of it durable": {
			config: pgtest.ServerConfig{Fsync: true},
			want:   map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"},
		},
		"a setting wins and may hold quote marks": {
			config: pgtest.ServerConfig{Settings: map[string]string{"max_connections": "17", "cluster_name": "it's"}},
			want:   map[string]string{"max_connections": "17", "cluster_name": "it's"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			pool := connect(t, start(t, test.config))
			for setting, want := range test.want {
				var got string
				require.NoError(t, pool.QueryRow(t.Context(), `select current_setting($1)`, setting).Scan(&got))
				require.Equal(t, want, got, setting)
			}
		})
	}
}

// Without the server's log the cause of a failed start is unknown.
func TestStartShowsTheLogOfAServerThatDoesNotStart(t *testing.T) {
	t.Parallel()

	config := pgtest.ServerConfig{Settings: map[string]string{"no_such_setting": "1"}}
	_, err := pgtest.Start(t.Context(), config)
	require.ErrorContains(t, err, "no_such_setting")
}

// A proxy dials the server's socket.
func TestSocketCanBeDialed(t *testing.T) {
	t.Parallel()

	conn, err := net.Dial("unix", start(t, pgtest.ServerConfig{}).Socket())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// Files that tests leave behind would fill the disk.
func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ killed bool }{
		"of a server that runs":       {},
		"of a server that was killed": {killed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := start(t, pgtest.ServerConfig{})
			if test.killed {
				require.NoError(t, server.Kill())
			}
			require.NoError(t, server.Stop())
			require.NoError(t, server.Stop(), "a second time")
			require.NoDirExists(t, server.Folder())
			require.Error(t, server.Restart(t.Context()))
		})
	}
}

// Other users of the machine must not be able to connect.
func TestFolderIsClosedToOthers(t *testing.T) {
	t.Parallel()

	info, err := os.Stat(start(t, pgtest.ServerConfig{}).Folder())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func start(t *testing.T, config pgtest.ServerConfig) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func connect(t *testing.T, server *pgtest.Server) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), server.ConnString("postgres"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
