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
	"github.com/lease-governance/leasereaper/reaper"
)

// mappingFlags say what the tables, columns and states are called, where they differ from
// the reference schema. A mapping file can say more.
type mappingFlags struct {
	table, settings, letters string
	columns, states          map[string]string
}

func (m *mappingFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&m.table, "queue", "job_queue", "the queue's table, as in schema.table")
	flags.StringVar(&m.settings, "settings", "queue_config", "the table of the settings")
	flags.StringVar(&m.letters, "letters", "job_dead_letter", "the table of the dead letters")
	flags.StringToStringVar(&m.columns, "columns", nil, "columns with other names, as in job_id=id,state=status")
	flags.StringToStringVar(&m.states, "states", nil, "states with other names, as in leased=running")
}

// any reports whether something is mapped.
func (m *mappingFlags) any() bool {
	return m.table != "job_queue" || m.settings != "queue_config" || m.letters != "job_dead_letter" ||
		len(m.columns)+len(m.states) > 0
}

// columnNames are the reference schema's, which the flags give other names to.
func columnNames() []string {
	return []string{
		"job_id", "job_kind", "state", "attempts", "max_attempts",
		"scheduled_at", "lease_owner", "lease_until", "last_error",
	}
}

func stateNames() []string { return []string{"leased", "retry_waiting", "dead_letter"} }

// mapping is what the flags say.
func (m *mappingFlags) mapping() (mapping, error) {
	columns, states := known("--columns", m.columns, columnNames()), known("--states", m.states, stateNames())
	if err := errors.Join(columns, states); err != nil {
		return mapping{}, err
	}
	c, s := m.columns, m.states
	queue := reaper.Table{
		Name: split(m.table),
		Columns: reaper.Columns{
			JobID: c["job_id"], JobKind: c["job_kind"], State: c["state"], Attempts: c["attempts"],
			MaxAttempts: c["max_attempts"], ScheduledAt: c["scheduled_at"], LeaseOwner: c["lease_owner"],
			LeaseUntil: c["lease_until"], LastError: c["last_error"],
		},
		States: reaper.States{Leased: s["leased"], RetryWaiting: s["retry_waiting"], DeadLetter: s["dead_letter"]},
	}
	settings, letters := gates.Table{Name: split(m.settings)}, deadletter.Table{Name: split(m.letters)}
	return mapping{
		reaper:   reaper.Config{Queue: queue, Gates: settings, DeadLetter: letters},
		settings: settings,
		letters:  deadletter.Store{Table: letters, Queue: queue.DeadLetterQueue()},
	}, nil
}

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
