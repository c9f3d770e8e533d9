package gates_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// An operator reads a window with SQL, and PostgreSQL parses its end. The library must
// parse the same text as the same time.
func TestWindowsEndAsTheServerReadsThem(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	reapertest.Exec(t, pool, `
create function judge(value text) returns timestamptz language plpgsql as $$
begin
  return value::timestamptz;
exception
  when others then
    return null;
end
$$`)
	rows, err := pool.Query(t.Context(), `select v.value, judge(v.value) from unnest($1::text[]) v(value)`, endings())
	require.NoError(t, err)
	verdicts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Value string
		Until pgtype.Timestamptz
	}])
	require.NoError(t, err)

	taken := 0
	for _, v := range verdicts {
		got, err := window(v.Value).Window()
		if err != nil {
			continue
		}
		taken++
		v.Until.Time = v.Until.Time.UTC()
		require.Equal(t, v.Until, got, "%q", v.Value)
	}
	require.Greater(t, taken, 350, "the library takes some")
	require.Greater(t, len(verdicts)-taken, 1500, "and others not")
}

// endings composes ends of windows from valid, invalid and odd parts.
func endings() []string {
	dates := []string{"2026-01-02", "2024-02-29", "2026-02-29", "0001-01-01", "0000-12-31", "9999-12-31", "10000-01-01", "2026-1-2", "2026-00-10"}
	separators := []string{" ", "T", "t", "  ", ""}
	clocks := []string{"00:00:00", "23:59:59.999999", "3:04:05", "03:04:05.6", "03:04:05.12345678", "03:04:05,5", "24:00:00", "23:59:60", "03:04"}
	offsets := []string{"Z", "z", "+00", "-00", "+05:30", "-15:59", "+15:59:59", "-00:44:30", "+16", "+05:60", "+0530", "+5", " +00", "", " UTC", "+05:30:"}
	all := []string{"infinity", "-infinity", "INFINITY", " -Infinity ", "+infinity", "inf", "now", "today", "epoch", ""}
	for _, date := range dates {
		for _, separator := range separators {
			for _, clock := range clocks {
				for _, offset := range offsets {
					all = append(all, date+separator+clock+offset)
				}
			}
		}
	}
	for _, space := range spaces() {
		all = append(all, space+"2026-01-02 03:04:05Z"+space)
	}
	return all
}

// In any time zone of the operator's session, a timestamptz that PostgreSQL prints is a
// valid end of a window.
func TestWindowTakesWhatPostgreSQLPrints(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	zones := []string{
		"UTC", "Asia/Kolkata", "America/New_York", "Pacific/Kiritimati", "Africa/Monrovia", "Europe/Amsterdam", "<X>-15:59", "<X>+15:30",
	}
	for _, zone := range zones {
		tx := reapertest.Begin(t, pool)
		reapertest.Exec(t, tx, `select set_config('timezone', $1, true)`, zone)
		rows, err := tx.Query(t.Context(), `select t, t::text, to_jsonb(t) #>> '{}' from unnest(array[
			now(), 'infinity', '-infinity', '0002-03-04 05:06:07.8Z', '1901-02-03 04:05:06Z', '1935-06-07 08:09:10Z',
			'2026-07-08 09:10:11.000001Z', '9999-12-30 01:02:03Z']::timestamptz[]) t`)
		require.NoError(t, err)
		var until pgtype.Timestamptz
		var printed, asJSON string
		_, err = pgx.ForEachRow(rows, []any{&until, &printed, &asJSON}, func() error {
			until.Time = until.Time.UTC()
			for _, text := range []string{printed, asJSON} {
				got, err := window(text).Window()
				require.NoError(t, err, "in zone %s", zone)
				require.Equal(t, until, got, "%q in zone %s", text, zone)
			}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}
