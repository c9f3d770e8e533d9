package main

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/reaper"
)

// mapping says what the tables, columns and states are called. Its flags name
// what differs from the reference schema.
type mapping struct {
	table, settings, letters string
	columns, states          map[string]string
}

func (m *mapping) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.table, "queue", "job_queue", "the queue's table, as in schema.table")
	flags.StringVar(&m.settings, "settings", "queue_config", "the table of the settings")
	flags.StringVar(&m.letters, "letters", "job_dead_letter", "the table of the dead letters")
	flags.StringToStringVar(&m.columns, "columns", nil, "columns with other names, as in job_id=id,state=status")
	flags.StringToStringVar(&m.states, "states", nil, "states with other names, as in leased=running")
}

// reference reports whether nothing is mapped.
func (m *mapping) reference() bool {
	return m.table == "job_queue" && m.settings == "queue_config" && m.letters == "job_dead_letter" &&
		len(m.columns)+len(m.states) == 0
}

// columnNames are the reference schema's, which the flags give other names to.
func columnNames() []string {
	return []string{
		"job_id", "job_kind", "state", "attempts", "max_attempts",
		"scheduled_at", "lease_owner", "lease_until", "last_error",
	}
}

func stateNames() []string { return []string{"leased", "retry_waiting", "dead_letter"} }

// config is a Reaper's configuration for the mapped tables.
func (m *mapping) config() (reaper.Config, error) {
	columns, states := known("--columns", m.columns, columnNames()), known("--states", m.states, stateNames())
	if err := errors.Join(columns, states); err != nil {
		return reaper.Config{}, err
	}
	c, s := m.columns, m.states
	return reaper.Config{
		Queue: reaper.Table{
			Name: split(m.table),
			Columns: reaper.Columns{
				JobID: c["job_id"], JobKind: c["job_kind"], State: c["state"], Attempts: c["attempts"],
				MaxAttempts: c["max_attempts"], ScheduledAt: c["scheduled_at"], LeaseOwner: c["lease_owner"],
				LeaseUntil: c["lease_until"], LastError: c["last_error"],
			},
			States: reaper.States{Leased: s["leased"], RetryWaiting: s["retry_waiting"], DeadLetter: s["dead_letter"]},
		},
		Gates:      m.gates(),
		DeadLetter: deadletter.Table{Name: split(m.letters)},
	}, nil
}

func (m *mapping) gates() gates.Table { return gates.Table{Name: split(m.settings)} }

// known reports names on the left of a mapping that mean nothing.
func known(flag string, mapped map[string]string, names []string) error {
	for _, name := range slices.Sorted(maps.Keys(mapped)) {
		if !slices.Contains(names, name) {
			return misused("%s: %q is none of %s", flag, name, strings.Join(names, ", "))
		}
	}
	return nil
}

func split(name string) pgx.Identifier { return strings.Split(name, ".") }

// render puts the quoted names into a statement of the tool's own, in which
// {queue}, {letters}, {settings}, {job_id}, {leased} and the like stand for them. A
// column that the queue does not have reads as an empty text.
func (m *mapping) render(sql string) (string, error) {
	cfg, err := m.config()
	if err != nil {
		return "", err
	}
	q := cfg.Queue.DeadLetterQueue()
	var n pgtext.Names
	n.Name("queue", q.Table)
	n.Name("letters", split(m.letters))
	n.Name("settings", split(m.settings))
	for _, column := range []struct{ placeholder, name string }{
		{"job_id", q.JobID}, {"job_kind", q.JobKind}, {"state", q.State}, {"attempts", q.Attempts},
		{"max_attempts", q.MaxAttempts}, {"scheduled_at", q.ScheduledAt}, {"lease_until", q.LeaseUntil},
		{"last_error", q.LastError},
	} {
		if column.name == "" {
			n.Add(column.placeholder, noColumn)
		} else {
			n.Column(column.placeholder, column.name)
		}
	}
	n.Label("leased", q.Leased)
	n.Label("retry_waiting", q.RetryWaiting)
	if err := errors.Join(n.Faults...); err != nil {
		return "", &usageError{err.Error()}
	}
	return strings.NewReplacer(n.Pairs...).Replace(sql), nil
}

// noColumn stands for a column that the queue does not have.
const noColumn = "''::text"
