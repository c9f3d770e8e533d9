package mapping_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// The index is searched by the start of a lease, and the end is what is meant. Where the two
// differ by a microsecond, a live lease is taken.
func TestABoundOfTheKeyIsOneOfTheEnd(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	lengths := map[string]mapping.Queue{
		"an end":             {},
		"a constant":         {LeaseLength: time.Hour + 1500*time.Nanosecond},
		"the shortest":       {LeaseLength: time.Microsecond},
		"the longest":        {LeaseLength: 1<<63 - 1},
		"a column":           {LeaseSeconds: "length"},
		"an end, in UTC":     {TimesInUTC: true},
		"a constant, in UTC": {LeaseLength: 36 * time.Hour, TimesInUTC: true},
		"a column, in UTC":   {LeaseSeconds: "length", TimesInUTC: true},
	}
	const compared = `
select count(*) filter (where ({key} < {key(}x.bound - interval '0'{)key}) is distinct from ({end} < x.bound)),
  count(*) filter (where {end} < x.bound)
from (
  select {start} as lease, 5400.25 as length
  from unnest(array['-infinity', '0044-03-15Z BC', '2025-03-30 01:30Z', '2025-10-26 00:30Z', '2026-02-28 23:59:59.999999Z',
    '9999-12-31Z']::timestamptz[]) s
) q
cross join lateral (
  select {end} + step * interval '1 microsecond' as bound
  from unnest(array[-1, 0, 1, 3600000000]) step
) x`
	for name, length := range lengths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue()
			q.LeaseLength, q.LeaseSeconds, q.TimesInUTC = length.LeaseLength, length.LeaseSeconds, length.TimesInUTC
			start := "s"
			if q.TimesInUTC {
				start = "s at time zone 'utc'"
			}
			for _, zone := range []string{"UTC", "Asia/Kathmandu", "Europe/Vienna", "America/Sao_Paulo"} {
				tx, err := pool.Begin(t.Context())
				require.NoError(t, err)
				_, err = tx.Exec(t.Context(), `set local timezone = '`+zone+`'`)
				require.NoError(t, err)
				var different, before int
				sql := strings.Replace(in(t, q, compared), "{start}", start, 1)
				require.NoError(t, tx.QueryRow(t.Context(), sql).Scan(&different, &before), sql)
				require.Zero(t, different, zone)
				require.Equal(t, 10, before, zone)
				require.NoError(t, tx.Rollback(t.Context()))
			}
		})
	}
}

// A length is kept to the microsecond, and nothing that a column can hold is an error.
func TestEndsOfLeases(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	const end = `select ({end} - q.lease)::text from (select timestamptz '2026-01-01Z' as lease, `
	q := queue()
	q.LeaseLength = time.Hour + 1500*time.Nanosecond
	require.Equal(t, "01:00:00.000001", one[string](t, pool, in(t, q, end+`1) q`)))
	q.LeaseLength = 1<<63 - 1
	for _, start := range []string{"infinity", "-infinity", "294276-12-31 23:59:59Z", "289999-12-31Z", "4713-01-01Z BC"} {
		require.True(t, one[bool](t, pool, in(t, q, `select {end} >= q.lease from (select $1::timestamptz as lease) q`), start), start)
	}
	q.LeaseLength, q.LeaseSeconds = 0, "length"
	lengths := map[string]string{
		"0.000001": "00:00:00.000001", "1e11": "1157407 days 09:46:40", "0": "00:00:00", "-0.1": "", "100000000001": "", "'NaN'": "", "null": "",
	}
	require.Nil(t, one[*string](t, pool, in(t, q, end+`'inf'::float8 as length) q`))) // before 14 no numeric is infinite
	for length, want := range lengths {
		for _, typ := range []string{"float8", "numeric"} {
			got := one[*string](t, pool, in(t, q, end+length+`::`+typ+` as length) q`))
			if want == "" {
				require.Nil(t, got, length)
				continue
			}
			require.Equal(t, want, *got, length)
		}
	}
	for _, start := range []string{"infinity", "294276-12-31Z", "10000-01-01Z"} {
		require.Nil(t, one[*string](t, pool, in(t, q, `select {end}::text from (select $1::timestamptz as lease, 1e11 as length) q`), start), start)
	}
}
