package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/mapped"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/reaper"
)

// foreign says why init cannot make the queue of a mapping, or is empty.
func (m *mapping) foreign() string {
	q := m.reaper.Queue
	if q.Columns.State == reaper.None {
		return "it has no column of states, so it is another library's: use that library's own DDL"
	}
	columns := append(m.queueColumns(), column{name: m.letters.MovedAt})
	sets := []struct {
		name string
		set  reaper.Set
	}{{"only", q.Only}, {"on_reset", q.OnReset}, {"on_move", q.OnMove}}
	for _, s := range sets {
		for _, name := range slices.Sorted(maps.Keys(s.set)) {
			if !slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
				return fmt.Sprintf("%s names the column %q, whose type the mapping does not say", s.name, name)
			}
		}
	}
	return ""
}

// column is a column of a table with its type.
type column struct{ name, sql string }

// queueColumns are those of the queue, of which one without a name is missing.
func (m *mapping) queueColumns() []column {
	q := mapped.Queue(m.reaper.Queue)
	time, now := "timestamptz", "now()"
	if q.TimesInUTC {
		time, now = "timestamp", "(now() at time zone 'utc')"
	}
	ready := " default 'ready'"
	if q.Leased == "ready" || q.DeadLetter == "ready" {
		ready = ""
	}
	return []column{
		{q.JobID, "uuid primary key default gen_random_uuid()"},
		{q.JobKind, "text not null"},
		{q.State, "text not null" + ready},
		{"payload", "jsonb not null default '{}'"},
		{q.Attempts, "integer not null default 0"},
		{q.LostLeases, "integer not null default 0"},
		{q.MaxAttempts, "integer not null default 5"},
		{q.ScheduledAt, time + " not null default " + now},
		{q.LeaseOwner, "text"},
		{q.LeaseUntil, time},
		{q.LeaseSeconds, "integer"},
		{q.LastError, "text"},
		{m.letters.MovedAt, time},
	}
}

// ddl creates one of the tables, in their order.
func (m *mapping) ddl(table int) []string {
	name := m.tables()[table].Sanitize()
	switch table {
	case 0:
		return m.queueDDL(name)
	case 1:
		return []string{fmt.Sprintf(settingsDDL, name)}
	default:
		return []string{fmt.Sprintf(lettersDDL, name), "create index on " + name + " (job_id)"}
	}
}

// queueDDL creates the queue with the reaper's index, which for leases with a column of
// seconds is on their start, and the workers' one.
func (m *mapping) queueDDL(table string) []string {
	q := mapped.Queue(m.reaper.Queue)
	var columns []string
	for _, c := range m.queueColumns() {
		if c.name != "" {
			columns = append(columns, "  "+quote(c.name)+" "+c.sql)
		}
	}
	return []string{
		"create table " + table + " (\n" + strings.Join(columns, ",\n") + "\n)",
		fmt.Sprintf("create index on %s (%s)\n  where %s = %s",
			table, quote(q.LeaseUntil), quote(q.State), pgtext.Literal(q.Leased)),
		fmt.Sprintf("create index on %s (%s)\n  where %s in ('ready', %s)",
			table, quote(q.ScheduledAt), quote(q.State), pgtext.Literal(q.RetryWaiting)),
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// The tables that have the same columns under every mapping.
const (
	settingsDDL = `create table %s (
  key text primary key,
  value text not null,
  updated_at timestamptz not null default now(),
  updated_by text not null default current_user
)`

	lettersDDL = `create table %s (
  dead_letter_id uuid primary key default gen_random_uuid(),
  job_id uuid not null,
  job_kind text not null,
  attempts integer not null,
  max_attempts integer not null,
  final_error text not null,
  moved_by text not null,
  moved_at timestamptz not null default now(),
  job jsonb not null,
  redriven_at timestamptz,
  redriven_by text
)`
)
