package reaper_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// Two teams share a queue, and each reaps its own kinds. What the dry run shows is
// what the apply does, and another team's job is never touched.
func TestKindsNarrowWhatIsReaped(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		cfg  reaper.Config
		want []string
	}{
		"all":                      {reaper.Config{}, []string{"", "a", "b", `c"'\`}},
		"one":                      {reaper.Config{Kinds: []string{"a"}}, []string{"a"}},
		"two":                      {reaper.Config{Kinds: []string{"a", `c"'\`}}, []string{"a", `c"'\`}},
		"all but one":              {reaper.Config{ExceptKinds: []string{"a"}}, []string{"", "b", `c"'\`}},
		"some but one":             {reaper.Config{Kinds: []string{"a", "b"}, ExceptKinds: []string{"b"}}, []string{"a"}},
		"those without a kind":     {reaper.Config{Kinds: []string{""}}, []string{""}},
		"all with a kind":          {reaper.Config{ExceptKinds: []string{""}}, []string{"a", "b", `c"'\`}},
		"one that is not there":    {reaper.Config{Kinds: []string{"A"}}, []string{}},
		"a slow kind":              {reaper.Config{KindGrace: map[string]time.Duration{"a": time.Hour}}, []string{"", "b", `c"'\`}},
		"a kind that is not slow":  {reaper.Config{Grace: time.Hour, KindGrace: map[string]time.Duration{"a": 0}}, []string{"a"}},
		"a slow kind of some":      {reaper.Config{Kinds: []string{"a", "b"}, KindGrace: map[string]time.Duration{"a": time.Hour}}, []string{"b"}},
		"a slow kind that is over": {reaper.Config{Kinds: []string{"a"}, KindGrace: map[string]time.Duration{"a": time.Minute}}, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `alter table job_queue alter job_kind drop not null; alter table job_dead_letter alter job_kind drop not null`)
			reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until, attempts)
				select kind, 'leased', 'w', now() - interval '10 minutes', a from unnest($1::text[]) kind, unnest('{0,4}'::int[]) a`,
				[]*string{nil, ptr("a"), ptr("b"), ptr(`c"'\`)})
			r := reapertest.New(t, pool, test.cfg)

			dryRun, err := r.DryRun(t.Context(), 100)
			require.NoError(t, err)
			result := reapertest.Apply(t, r, 100)

			require.Equal(t, 2*len(test.want), dryRun.StaleLeaseCount)
			require.Len(t, dryRun.Jobs, dryRun.StaleLeaseCount)
			require.Len(t, result.Actions, dryRun.StaleLeaseCount)
			for i, action := range result.Actions {
				require.Equal(t, dryRun.Jobs[i].JobID, action.JobID)
			}
			require.Equal(t, test.want, reapertest.One[[]string](t, pool, `select coalesce(array_agg(distinct coalesce(job_kind, '') order by coalesce(job_kind, '')), '{}')
				from job_queue where state <> 'leased'`))
			require.Equal(t, 8-2*len(test.want), reapertest.States(t, pool)["leased"])
		})
	}
}

func ptr[T any](value T) *T { return &value }

// MaxStale is about the reaper's own kinds: another team's disaster does not stop
// this one's.
func TestMaxStaleCountsTheReapersKinds(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "ours", 2, 0, 5)
	reapertest.Stale(t, pool, "theirs", 20, 0, 5)

	require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{MaxStale: 2, Kinds: []string{"ours"}}), 10).Actions, 2)
}

// A loop knows of the kind whose leases are given more time: it comes when that
// time is over, not when it next happens to look at everything.
func TestRunForeseesTheEndOfAKindsGrace(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values
		('slow', 'leased', now() - interval '100 milliseconds'), ('quick', 'leased', now() - interval '200 milliseconds'),
		('theirs', 'leased', now() - interval '300 milliseconds'), ('quick', 'leased', now() + interval '1 second')`)
	r := reapertest.New(t, pool, reaper.Config{
		ExceptKinds: []string{"theirs"}, KindGrace: map[string]time.Duration{"slow": 2 * time.Second},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // before the first full look
	defer cancel()
	var kinds []string

	err := r.Run(ctx, reapertest.Actor, reaper.RunConfig{
		Interval: time.Hour, MinInterval: 10 * time.Millisecond, Settle: 1,
		OnPass: func(_ context.Context, pass reaper.Pass) {
			if pass.Result == nil {
				return
			}
			for _, action := range pass.Result.Actions {
				kinds = append(kinds, action.JobKind)
				require.GreaterOrEqual(t, action.Overdue, map[string]time.Duration{"slow": 2 * time.Second}[action.JobKind])
			}
			if len(kinds) == 3 {
				cancel()
			}
		},
	})

	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"quick", "quick", "slow"}, kinds)
	require.Equal(t, map[string]int{"leased": 1, "retry_waiting": 3}, reapertest.States(t, pool))
}

// A wrong kind shows at once, not as jobs that are never reaped.
func TestNewRefusesKindsThatCannotBe(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)

	tests := map[string]struct {
		cfg  reaper.Config
		want error
	}{
		"a kind with a NUL":        {reaper.Config{Kinds: []string{"a", "b\x00"}}, reaper.ErrKind},
		"a kind that is not text":  {reaper.Config{ExceptKinds: []string{"\xff"}}, reaper.ErrKind},
		"such a kind with a grace": {reaper.Config{KindGrace: map[string]time.Duration{"\xff": 0}}, reaper.ErrKind},
		"a negative grace":         {reaper.Config{KindGrace: map[string]time.Duration{"a": -1}}, reaper.ErrNegative},
		"a queue without kinds": {reaper.Config{
			Kinds: []string{"a"}, Queue: reaper.Table{Columns: reaper.Columns{JobKind: reaper.None}},
		}, reaper.ErrKind},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := reaper.New(pool, test.cfg)
			require.ErrorIs(t, err, test.want)
		})
	}
}

// The longest grace that there is must not overflow on its way to the server.
func TestTheLongestKindGraceIsTaken(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "slow", 1, 0, 5)
	reapertest.Stale(t, pool, "quick", 1, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{KindGrace: map[string]time.Duration{"slow": math.MaxInt64}})

	require.Len(t, reapertest.Apply(t, r, 10).Actions, 1)
}
