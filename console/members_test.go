package console_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// A shard that was added would not be there until somebody starts the console again, or all
// would be gone because the list cannot be read.
func TestDatabasesComeAndGo(t *testing.T) {
	t.Parallel()

	pool := filled(t)
	var list atomic.Pointer[[]fleet.Member]
	list.Store(&[]fleet.Member{{Name: "public.jobs 1", DB: pool}})
	h := handler(t, console.Config{
		Fresh: time.Nanosecond,
		Members: console.OfFleet(func(context.Context) ([]fleet.Member, error) {
			if members := list.Load(); members != nil {
				return *members, nil
			}
			return nil, errors.New("away")
		}),
	})
	require.Equal(t, "public-jobs-1/overview", get(t, h, "/").Header.Get("Location"))
	require.Equal(t, http.StatusNotFound, get(t, h, "/other/overview").StatusCode)

	list.Store(&[]fleet.Member{{Name: "other", DB: pool}, {Name: "other", DB: pool}, {Name: "strange", DB: beginner{}}})
	require.Equal(t, http.StatusOK, get(t, h, "/other/overview").StatusCode)
	require.Equal(t, http.StatusNotFound, get(t, h, "/strange/overview").StatusCode)
	require.Equal(t, http.StatusNotFound, get(t, h, "/public-jobs-1/overview").StatusCode)

	list.Store(nil)
	require.Equal(t, http.StatusOK, get(t, h, "/other/overview").StatusCode, "the last list stays")

	list.Store(&[]fleet.Member{})
	require.Equal(t, http.StatusNotFound, get(t, h, "/").StatusCode)
}

// What a page has read for all would be forgotten each time the list is asked for, or a
// member would go on with an old configuration.
func TestAMemberOfTheListIsKeptUnlessItChanges(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	m := fleet.Member{Name: "shop", DB: pool}
	var kinds atomic.Pointer[string]
	h := handler(t, console.Config{
		Fresh: time.Nanosecond,
		Members: console.OfFleet(func(context.Context) ([]fleet.Member, error) {
			one := m
			if kind := kinds.Load(); kind != nil {
				one.Config.Kinds = []string{*kind}
			}
			return []fleet.Member{one}, nil
		}),
	})
	_, err := pool.Exec(t.Context(), fill)
	require.NoError(t, err)
	require.Contains(t, get(t, h, "/shop/jobs.json").body, "charge_card")
	kind := "resize_image"
	kinds.Store(&kind)
	require.NotContains(t, get(t, h, "/shop/jobs.json").body, "charge_card")
}

// beginner is a DB that is no pool.
type beginner struct{}

func (beginner) Begin(context.Context) (pgx.Tx, error) { return nil, errors.New("not called") }
