package deadletter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A slip in a call must not become a redrive of everything, or of nothing without
// a word.
func TestImpossibleInputIsATypedError(t *testing.T) {
	t.Parallel()
	untouched := beginner(func() (pgx.Tx, error) {
		t.Error("a transaction was begun")
		return nil, errors.New("not here")
	})

	tests := map[string]struct {
		store  deadletter.Store
		filter deadletter.Filter
		limit  int
		want   error
	}{
		"no limit":                {limit: 0, want: deadletter.ErrLimit},
		"a negative limit":        {limit: -1, want: deadletter.ErrLimit},
		"a negative age":          {filter: deadletter.Filter{OlderThan: -1}, limit: 1, want: deadletter.ErrNegative},
		"another negative age":    {filter: deadletter.Filter{YoungerThan: -time.Hour}, limit: 1, want: deadletter.ErrNegative},
		"an unknown status":       {filter: deadletter.Filter{Status: "dead"}, limit: 1, want: deadletter.ErrFilter},
		"a kind with a NUL":       {filter: deadletter.Filter{Kinds: []string{"a", "\x00"}}, limit: 1, want: deadletter.ErrFilter},
		"a kind that is no UTF-8": {filter: deadletter.Filter{Kinds: []string{"\xff"}}, limit: 1, want: deadletter.ErrFilter},
		"an error with a NUL":     {filter: deadletter.Filter{ErrorContains: "a\x00"}, limit: 1, want: deadletter.ErrFilter},
		"an id with a NUL":        {filter: deadletter.Filter{IDs: []string{"\x00"}}, limit: 1, want: deadletter.ErrID},
		"a job that is no UTF-8":  {filter: deadletter.Filter{JobIDs: []string{"\xff"}}, limit: 1, want: deadletter.ErrID},
		"no place":                {filter: deadletter.Filter{After: "2026-01-01"}, limit: 1, want: deadletter.ErrFilter},
		"a place with a NUL":      {filter: deadletter.Filter{After: "2026-01-01/\x00"}, limit: 1, want: deadletter.ErrFilter},
		"an impossible table":     {store: deadletter.Store{Table: deadletter.Table{Name: pgx.Identifier{""}}}, limit: 1, want: pgtext.ErrName},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := deadletter.List(t.Context(), untouched, test.store, test.filter, test.limit)
			require.ErrorIs(t, err, test.want)
			require.Nil(t, page)
			result, err := deadletter.Redrive(t.Context(), untouched, test.store, operator, test.filter, test.limit)
			require.ErrorIs(t, err, test.want)
			require.Nil(t, result)
		})
	}
}

// The same for what only some of the calls take.
func TestImpossibleCallsAreTypedErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var db beginner
	partial := deadletter.Store{Queue: reference()} // as movers take it
	redrive := func(db deadletter.DB, store deadletter.Store, actor string, filter deadletter.Filter) error {
		_, err := deadletter.Redrive(ctx, db, store, actor, filter, 1)
		return err
	}
	purge := func(db deadletter.DB, store deadletter.Store, age time.Duration, cfg deadletter.PurgeConfig) error {
		result, err := deadletter.Purge(ctx, db, store, age, cfg)
		require.Equal(t, &deadletter.PurgeResult{}, result)
		return err
	}
	_, listed := deadletter.List(ctx, (*pgxpool.Pool)(nil), deadletter.Store{}, deadletter.Filter{}, 1)

	tests := map[string]struct{ got, want error }{
		"no actor":                   {redrive(db, deadletter.Store{}, "", deadletter.Filter{}), deadletter.ErrActor},
		"a white actor":              {redrive(db, deadletter.Store{}, " \t\n", deadletter.Filter{}), deadletter.ErrActor},
		"an actor with a NUL":        {redrive(db, deadletter.Store{}, "a\x00", deadletter.Filter{}), deadletter.ErrActor},
		"an actor that's no UTF-8":   {redrive(db, deadletter.Store{}, "\xff", deadletter.Filter{}), deadletter.ErrActor},
		"of redriven letters":        {redrive(db, deadletter.Store{}, operator, deadletter.Filter{Status: deadletter.StatusRedriven}), deadletter.ErrFilter},
		"a queue without a table":    {redrive(db, deadletter.Store{Queue: deadletter.Queue{JobID: `id`}}, operator, deadletter.Filter{}), deadletter.ErrQueue},
		"no queue":                   {redrive(db, partial, operator, deadletter.Filter{}), deadletter.ErrQueue},
		"no database":                {redrive(nil, deadletter.Store{}, operator, deadletter.Filter{}), deadletter.ErrNilDB},
		"no pool":                    {redrive((*pgxpool.Pool)(nil), deadletter.Store{}, operator, deadletter.Filter{}), deadletter.ErrNilDB},
		"list without a pool":        {listed, deadletter.ErrNilDB},
		"purge without a database":   {purge(nil, deadletter.Store{}, 0, deadletter.PurgeConfig{}), deadletter.ErrNilDB},
		"purge without a queue":      {purge(db, partial, 0, deadletter.PurgeConfig{}), deadletter.ErrQueue},
		"purge of a negative age":    {purge(db, deadletter.Store{}, -1, deadletter.PurgeConfig{}), deadletter.ErrNegative},
		"purge by a status of none":  {purge(db, deadletter.Store{}, 0, deadletter.PurgeConfig{Filter: deadletter.Filter{Status: "x"}}), deadletter.ErrFilter},
		"purge of what is kept":      {purge(db, deadletter.Store{}, 0, deadletter.PurgeConfig{Filter: deadletter.Filter{Status: deadletter.StatusUnredriven}}), deadletter.ErrFilter},
		"purge by a negative age":    {purge(db, deadletter.Store{}, 0, deadletter.PurgeConfig{Filter: deadletter.Filter{OlderThan: -1}}), deadletter.ErrNegative},
		"purge of a negative wait":   {purge(db, deadletter.Store{LockTimeout: -1}, 0, deadletter.PurgeConfig{}), deadletter.ErrNegative},
		"redrive of a negative wait": {redrive(db, deadletter.Store{LockTimeout: -1}, operator, deadletter.Filter{}), deadletter.ErrNegative},
		"over a negative time":       {redrive(db, deadletter.Store{Spread: -1}, operator, deadletter.Filter{}), deadletter.ErrNegative},
		"purge in negative":          {purge(db, deadletter.Store{}, 0, deadletter.PurgeConfig{Batch: -1}), deadletter.ErrNegative},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, test.got, test.want)
		})
	}

	err := redrive(nil, partial, "", deadletter.Filter{Status: "x", OlderThan: -1})
	for _, want := range []error{
		deadletter.ErrNilDB, deadletter.ErrQueue, deadletter.ErrActor, deadletter.ErrFilter, deadletter.ErrNegative,
	} {
		require.ErrorIs(t, err, want, "every fault at once")
	}
	lacking := 0
	for _, fault := range reapertest.Flatten(err) {
		if errors.Is(fault, deadletter.ErrQueue) {
			lacking++
		}
	}
	require.Equal(t, 6, lacking, err)
}

// An id that was cut off, or is another table's, is the caller's slip, not the
// server's. The next row of a script must be able to tell.
func TestAnIDOfAnotherTypeIsATypedError(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b")
	before := reapertest.Contents(t, pool)
	pools := reapertest.InEveryMode(t, pool)

	tests := map[string]struct {
		filter   deadletter.Filter
		want     error
		sqlState string
	}{
		"a letter's":                   {deadletter.Filter{IDs: []string{letterOf(t, pool, ids[0]), "7"}}, deadletter.ErrID, "22P02"},
		"an empty one":                 {deadletter.Filter{IDs: []string{""}}, deadletter.ErrID, "22P02"},
		"one with quotes":              {deadletter.Filter{IDs: []string{`","\`}}, deadletter.ErrID, "22P02"},
		"a job's":                      {deadletter.Filter{JobIDs: []string{strings.Repeat("f", 31)}}, deadletter.ErrID, "22P02"},
		"a place's":                    {deadletter.Filter{After: "2026-01-01/7"}, deadletter.ErrID, "22P02"},
		"a place of no time":           {deadletter.Filter{After: "soon/" + ids[0]}, deadletter.ErrFilter, "22007"},
		"a place of no day":            {deadletter.Filter{After: "2026-02-30/" + ids[0]}, deadletter.ErrFilter, "22008"},
		"a place beyond all centuries": {deadletter.Filter{After: "999999-01-01/" + ids[0]}, deadletter.ErrFilter, "22008"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, pool := range pools {
				_, err := deadletter.List(t.Context(), pool, deadletter.Store{}, test.filter, 10)
				requireTyped(t, err, test.want, test.sqlState, mode)
				_, err = deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, test.filter, 10)
				requireTyped(t, err, test.want, test.sqlState, mode)
				_, err = deadletter.Purge(t.Context(), pool, deadletter.Store{}, 0, deadletter.PurgeConfig{Unredriven: true, Filter: test.filter})
				requireTyped(t, err, test.want, test.sqlState, mode)
			}
			require.Equal(t, before, reapertest.Contents(t, pool))
		})
	}
}

func requireTyped(t *testing.T, err, want error, sqlState string, mode pgx.QueryExecMode) {
	t.Helper()
	require.ErrorIs(t, err, want, mode)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr, mode)
	require.Equal(t, sqlState, pgErr.Code, mode)
}

// Keys of other types have other ways to be wrong.
func TestAnIDBeyondItsTypeIsATypedError(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ key, id string }{
		"too large a number": {"bigint", "9223372036854775808"},
		"a fraction":         {"bigint", "1.5"},
		"not of the enum":    {"job_enum", "second"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Empty(t)
			store := createMapped(t, pool, test.key)
			_, err := deadletter.Redrive(t.Context(), pool, store, operator, deadletter.Filter{JobIDs: []string{test.id}}, 1)
			require.ErrorIs(t, err, deadletter.ErrID)
		})
	}
}
