package deadletter_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// beginner makes a DB of a function.
type beginner func() (pgx.Tx, error)

func (b beginner) Begin(context.Context) (pgx.Tx, error) { return b() }

// meddler is a transaction in which something happens before a batch is sent, or
// at the commit.
type meddler struct {
	pgx.Tx

	before func(sent int)
	commit func() error
	sent   int
}

func (m *meddler) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	m.sent++
	if m.before != nil {
		m.before(m.sent)
	}
	return m.Tx.SendBatch(ctx, b)
}

func (m *meddler) Commit(ctx context.Context) error {
	if m.commit != nil {
		return m.commit()
	}
	return m.Tx.Commit(ctx)
}

// A redrive that breaks off halfway must have done nothing: a job that is back
// and whose letter is unmarked would be put back a second time.
func TestARedriveThatBreaksOffLeavesNoTrace(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		at   int // before this exchange of batches
		kill bool
	}{
		"ended before its settings":  {at: 1},
		"ended before it looks":      {at: 2},
		"ended before it locks":      {at: 3},
		"ended before it writes":     {at: 4},
		"killed before its settings": {at: 1, kill: true},
		"killed before it looks":     {at: 2, kill: true},
		"killed before it writes":    {at: 4, kill: true},
		"ended before the commit":    {at: 5},
		"killed before the commit":   {at: 5, kill: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "a", "b", "c")
			reapertest.Exec(t, pool, `delete from job_queue where job_kind = 'b'`)
			before := reapertest.Contents(t, pool)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			strike := func(tx pgx.Tx) {
				if !test.kill {
					cancel()
					return
				}
				pid := int(tx.Conn().PgConn().PID())
				require.True(t, reapertest.One[bool](t, pool, `select pg_terminate_backend($1)`, pid))
				require.Eventually(t, func() bool {
					return reapertest.One[bool](t, pool, `select not exists (select from pg_stat_activity where pid = $1)`, pid)
				}, 30*time.Second, time.Millisecond)
			}
			db := beginner(func() (pgx.Tx, error) {
				tx, err := pool.Begin(ctx)
				return &meddler{
					Tx: tx,
					before: func(sent int) {
						if sent == test.at {
							strike(tx)
						}
					},
					commit: func() error {
						if test.at == 5 {
							strike(tx)
						}
						return tx.Commit(ctx)
					},
				}, err
			})

			result, err := deadletter.Redrive(ctx, db, deadletter.Store{}, operator, deadletter.Filter{}, 10)
			require.Error(t, err)
			require.Nil(t, result)
			require.Equal(t, before, reapertest.Contents(t, pool))
			require.Eventually(t, func() bool { // the server may notice late that the connection is gone
				return redriveAll(t, pool, deadletter.Filter{}).RedrivenCount == 3
			}, 30*time.Second, time.Millisecond)
			reapertest.RequireAgreement(t, pool)
		})
	}
}

// When the connection breaks during the commit, a caller who takes it for a
// failure would report what has happened as not happened.
func TestACommitWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a")
	broken := beginner(func() (pgx.Tx, error) {
		tx, err := pool.Begin(t.Context())
		return &meddler{Tx: tx, commit: func() error {
			require.NoError(t, tx.Commit(t.Context()))
			return io.ErrUnexpectedEOF
		}}, err
	})

	_, err := deadletter.Redrive(t.Context(), broken, deadletter.Store{}, operator, deadletter.Filter{}, 10)
	require.ErrorIs(t, err, deadletter.ErrOutcomeUnknown)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Empty(t, redriveAll(t, pool, deadletter.Filter{}).Redriven, "calling again is safe")
	reapertest.RequireAgreement(t, pool)

	result, err := deadletter.Purge(t.Context(), broken, deadletter.Store{}, 0, deadletter.PurgeConfig{})
	require.ErrorIs(t, err, deadletter.ErrOutcomeUnknown)
	require.Zero(t, result.RedrivenCount)
	result, err = deadletter.Purge(t.Context(), pool, deadletter.Store{}, 0, deadletter.PurgeConfig{})
	require.NoError(t, err)
	require.Zero(t, result.RedrivenCount)
}

// A commit that the server refused has not happened, and is no riddle.
func TestACommitThatFailsIsTheServersError(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a")
	before := reapertest.Contents(t, pool)
	refused := beginner(func() (pgx.Tx, error) {
		tx, err := pool.Begin(t.Context())
		return &meddler{Tx: tx, commit: func() error {
			_, _ = tx.Exec(t.Context(), `select 1 / 0`)
			return tx.Commit(t.Context())
		}}, err
	})

	_, err := deadletter.Redrive(t.Context(), refused, deadletter.Store{}, operator, deadletter.Filter{}, 10)
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	require.NotErrorIs(t, err, deadletter.ErrOutcomeUnknown)
	require.Equal(t, before, reapertest.Contents(t, pool))
}

// A conflict that someone else has caused is no reason to fail.
func TestAConflictIsTriedAgain(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		conflicts int
		want      bool
	}{
		"once":         {1, true},
		"many times":   {5, true},
		"all the time": {99, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "a")
			begun := 0
			db := beginner(func() (pgx.Tx, error) {
				tx, err := pool.Begin(t.Context())
				begun++
				fails := begun <= test.conflicts
				return &meddler{Tx: tx, commit: func() error {
					if fails {
						return &pgconn.PgError{Code: "40001", SeverityUnlocalized: "ERROR"}
					}
					return tx.Commit(t.Context())
				}}, err
			})

			result, err := deadletter.Redrive(t.Context(), db, deadletter.Store{}, operator, deadletter.Filter{}, 10)
			if test.want {
				require.NoError(t, err)
				require.Equal(t, 1, result.RedrivenCount)
				require.Equal(t, test.conflicts+1, begun)
				return
			}
			require.Error(t, err)
			require.Equal(t, 6, begun)
			reapertest.RequireAgreement(t, pool)
		})
	}
}

// On a standby an operator has to read that it is one, not a code.
func TestAReadOnlyConnectionIsATypedError(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a")
	readOnly := reapertest.WithSettings(t, pool, map[string]string{"default_transaction_read_only": "on"})

	_, err := deadletter.Redrive(t.Context(), readOnly, deadletter.Store{}, operator, deadletter.Filter{}, 10)
	require.ErrorIs(t, err, deadletter.ErrReadOnly)
	_, err = deadletter.Purge(t.Context(), readOnly, deadletter.Store{}, 0, deadletter.PurgeConfig{})
	require.ErrorIs(t, err, deadletter.ErrReadOnly)
}

// Databases that default to a stricter level would fail where someone else was
// faster.
func TestAStricterDefaultDoesNoHarm(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a")
	strict := reapertest.WithSettings(t, pool, map[string]string{"default_transaction_isolation": "serializable"})
	strict, recorder := reapertest.Recording(t, strict)

	require.Equal(t, ids, jobsOf(redriveAll(t, strict, deadletter.Filter{})))
	require.Contains(t, recorder.Statements(), reapertest.Sent{SQL: "begin isolation level read committed"})
}
