package pgtx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// An error of the wrong class is retried for ever, or not at all, or counts as an error of
// a row. The server raises these errors.
func TestErrorsOfTheServerAreToldApart(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)

	tests := map[string]struct {
		code                             string
		conflict, concernsAll, connected bool
	}{
		"a serialization failure": {"40001", true, true, true},
		"a deadlock":              {"40P01", true, true, true},
		"a lock":                  {"55P03", false, true, true},
		"a time-out":              {"57014", false, true, true},
		"a privilege":             {"42501", false, true, true},
		"a full disk":             {"53100", false, true, true},
		"a lost connection":       {"08006", false, true, false},
		"a check":                 {"23514", false, false, true},
		"a number out of range":   {"22003", false, false, true},
		"a trigger's own":         {"P0001", false, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pool.Exec(t.Context(), `do $$ begin raise exception 'no' using errcode = '`+test.code+`'; end $$`)
			err = fmt.Errorf("wrapped: %w", err)
			require.Equal(t, test.code, pgtx.Code(err))
			require.Equal(t, test.conflict, pgtx.IsConflict(err))
			require.Equal(t, test.concernsAll, pgtx.MayConcernAll(err))
			require.Equal(t, !test.connected, pgtx.IsUnreachable(err))
			require.True(t, pgtx.IsServerError(err))
			require.True(t, pgtx.NotCommitted(err))
		})
	}
}

// A change of a table between two applies makes a prepared statement invalid. The apply
// must be retried and not fail the service.
func TestAStaleStatementIsAConflict(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, sql := range []string{`create table things (n int)`, `prepare read as select * from things`, `execute read`, `alter table things add m int`} {
		_, err = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	_, err = conn.Exec(t.Context(), `execute read`, pgx.QueryExecModeSimpleProtocol)
	require.True(t, pgtx.IsConflict(err), err)
}

// A backend that is ended sends a FATAL error, also just after its commit. That is an
// outage and no proof that nothing was committed.
func TestAFatalErrorProvesNothing(t *testing.T) {
	t.Parallel()
	_, err := pgtest.Empty(t).Exec(t.Context(), `select pg_terminate_backend(pg_backend_pid())`)
	require.Equal(t, "57P01", pgtx.Code(err))
	require.True(t, pgtx.IsUnreachable(err))
	require.False(t, pgtx.IsServerError(err))
	require.False(t, pgtx.NotCommitted(err))
	require.False(t, pgtx.IsConflict(err))
}

// errPlain is not from the server.
var errPlain = errors.New("plain")

// An error that is not from the server may be an outage, but it is neither a conflict nor
// an error of a row.
func TestErrorsOfTheClientAreToldApart(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		err                     error
		unreachable, notWritten bool
	}{
		"nothing":               {nil, false, false},
		"plain":                 {errPlain, false, false},
		"the end of the stream": {io.ErrUnexpectedEOF, true, false},
		"a closed connection":   {net.ErrClosed, true, false},
		"a time-out":            {context.DeadlineExceeded, true, false},
		"no connection at all":  {&pgconn.ConnectError{}, true, false},
		"a rollback instead":    {pgx.ErrTxCommitRollback, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.unreachable, pgtx.IsUnreachable(test.err))
			require.Equal(t, test.notWritten, pgtx.NotCommitted(test.err))
			require.Empty(t, pgtx.Code(test.err))
			require.False(t, pgtx.IsConflict(test.err) || pgtx.MayConcernAll(test.err) || pgtx.IsServerError(test.err))
		})
	}
}
