package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/internal/mapped"
	queues "github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/stmt"
	"github.com/lease-governance/leasereaper/reaper"
)

// scopeOf is which leases are a reaper's, as the library's statements have it.
func scopeOf(cfg reaper.Config) stmt.Scope {
	return stmt.Scope{Kinds: cfg.Kinds, Except: cfg.ExceptKinds, Grace: cfg.Grace, ByKind: cfg.KindGrace}
}

// render puts the quoted names into a statement of the tool's own. Besides those of
// package mapping they are
//
//	{letters}        the dead letters: a table, or a subquery over the queue
//	{settings}       the table of the settings
//	{kind_text}      of q: the kind, as a text that is not NULL
//	{stale}          whether q is stale; its $1 is the scope's parameter
//	{exhausted}      whether q would be moved
//	{was_reset}      whether q was reset by a reaper, as far as its last error tells
//	{backoff}        the wait that a reset gave q, in seconds, with the setting's base as $2
//	{backoff_before} the same, for a q that was claimed since
//	{since}          the time $1 ago, as the time columns hold it
func (m *mapping) render(sql string) (string, error) {
	queue := mapped.Queue(m.reaper.Queue)
	n := queue.Names()
	statements, err := stmt.New(queue, scopeOf(m.reaper), m.letters.Table.Name)
	if err != nil {
		return "", &usageError{err.Error()}
	}
	n.Add("kind_text", strings.NewReplacer(n.Pairs...).Replace("coalesce(({kind})::text, '')"))
	in := strings.NewReplacer(n.Pairs...).Replace
	n.Name("settings", m.settings.Name)
	n.Add("stale", statements.Stale)
	n.Add("exhausted", in(exhausted))
	n.Add("since", inUTC("now() - $1::interval", queue))
	n.Add("backoff", m.backoff(in("q.{counter}"), in("{kind_text}")))
	claimed := "q.{counter}"
	if queue.Step() == 0 {
		claimed += " - 1"
	}
	n.Add("backoff_before", m.backoff("("+in(claimed)+")", in("{kind_text}")))
	wasReset := "false"
	if queue.LastError != "" {
		wasReset = "q." + n.Column("last_error", queue.LastError) + " = 'lease_expired_reaped'"
	}
	n.Add("was_reset", wasReset)
	m.addLetters(n, queue, in)
	if err := errors.Join(n.Faults...); err != nil {
		return "", &usageError{err.Error()}
	}
	return strings.NewReplacer(n.Pairs...).Replace(sql), nil
}

// exhausted is the library's condition, without that of attempts at the largest value of
// their type.
const exhausted = `coalesce(q.{counter}, 0)::bigint >= greatest({limit}, -9223372036854775807) - {step}`

// addLetters adds the table of the dead letters, or the dead rows of the queue in the form
// of letters.
func (m *mapping) addLetters(n *pgtext.Names, queue queues.Queue, in func(string) string) {
	if !m.letters.InPlace {
		n.Name("letters", m.letters.Table.Name)
		return
	}
	moved := "null::timestamptz"
	if m.letters.MovedAt != "" {
		moved = inUTC("q."+n.Column("moved_at", m.letters.MovedAt), queue)
	}
	n.Add("letters", in(letterColumns)+",\n    "+moved+" as moved_at"+in(letterRows))
}

const (
	letterColumns = `(
  select {kind_text} as job_kind, q.{job_id} as job_id, q.{attempts} as attempts, {maximum} as max_attempts,
    null::text as moved_by`
	letterRows = `
  from {queue} q
  where {is_dead}{only_dead}
)`
)

func inUTC(sql string, queue queues.Queue) string {
	if queue.TimesInUTC {
		return "((" + sql + ") at time zone 'utc')"
	}
	return "(" + sql + ")"
}

// backoff is the wait of a kind after some attempts, as SQL.
func (m *mapping) backoff(attempts, kind string) string {
	const base = "$2::float8"
	var others policyOf
	if m.policy != nil {
		others = *m.policy
	}
	if len(m.kindPolicy) == 0 {
		return others.sql(attempts, base)
	}
	var cases strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.kindPolicy)) {
		fmt.Fprintf(&cases, " when %s then %s", pgtext.Literal(name), m.kindPolicy[name].sql(attempts, base))
	}
	return "case " + kind + cases.String() + " else " + others.sql(attempts, base) + " end"
}
