package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// entry is a database in a mapping file. What is left out is the reference schema's, or
// the reaper's default.
type entry struct {
	URL        string `yaml:"url"`
	URLEnv     string `yaml:"url_env"`
	Production bool   `yaml:"production"`
	Citus      bool   `yaml:"citus"`
	Colour     string `yaml:"colour"`

	Queue       queueEntry   `yaml:"queue"`
	Settings    tableName    `yaml:"settings"`
	DeadLetters lettersEntry `yaml:"dead_letters"`

	Kinds       []string            `yaml:"kinds"`
	ExceptKinds []string            `yaml:"except_kinds"`
	Grace       spanOf              `yaml:"grace"`
	KindGrace   map[string]spanOf   `yaml:"kind_grace"`
	Backoff     *policyOf           `yaml:"backoff"`
	KindBackoff map[string]policyOf `yaml:"kind_backoff"`
	MaxStale    int                 `yaml:"max_stale"`
	CountUpTo   int                 `yaml:"count_up_to"`
	LockTimeout spanOf              `yaml:"lock_timeout"`
}

// queueEntry has the fields of reaper.Table.
type queueEntry struct {
	Table   tableName    `yaml:"table"`
	Columns columnsEntry `yaml:"columns"`
	States  struct {
		Leased       string `yaml:"leased"`
		RetryWaiting string `yaml:"retry_waiting"`
		DeadLetter   string `yaml:"dead_letter"`
	} `yaml:"states"`
	LeaseLength   spanOf    `yaml:"lease_length"`
	CountsAtClaim bool      `yaml:"counts_at_claim"`
	MaxAttempts   int       `yaml:"max_attempts"`
	ExtraAttempts int       `yaml:"extra_attempts"`
	TimesInUTC    bool      `yaml:"times_in_utc"`
	MaxLostLeases int       `yaml:"max_lost_leases"`
	Only          setValues `yaml:"only"`
	OnReset       setValues `yaml:"on_reset"`
	OnMove        setValues `yaml:"on_move"`
}

// columnsEntry has the fields of reaper.Columns.
type columnsEntry struct {
	JobID        columnName `yaml:"job_id"`
	JobKind      columnName `yaml:"job_kind"`
	State        columnName `yaml:"state"`
	Attempts     columnName `yaml:"attempts"`
	MaxAttempts  columnName `yaml:"max_attempts"`
	ScheduledAt  columnName `yaml:"scheduled_at"`
	LeaseOwner   columnName `yaml:"lease_owner"`
	LeaseUntil   columnName `yaml:"lease_until"`
	LastError    columnName `yaml:"last_error"`
	LeaseSeconds columnName `yaml:"lease_seconds"`
	LostLeases   columnName `yaml:"lost_leases"`
}

// lettersEntry says where dead letters are, and what moves them there.
type lettersEntry struct {
	Table    tableName  `yaml:"table"`
	Function tableName  `yaml:"function"`
	InPlace  bool       `yaml:"in_place"`
	MovedAt  columnName `yaml:"moved_at"`
}

func (q *queueEntry) table() reaper.Table {
	c := q.Columns
	return reaper.Table{
		Name: pgx.Identifier(q.Table),
		Columns: reaper.Columns{
			JobID: string(c.JobID), JobKind: string(c.JobKind), State: string(c.State), Attempts: string(c.Attempts),
			MaxAttempts: string(c.MaxAttempts), ScheduledAt: string(c.ScheduledAt), LeaseOwner: string(c.LeaseOwner),
			LeaseUntil: string(c.LeaseUntil), LastError: string(c.LastError), LeaseSeconds: string(c.LeaseSeconds),
			LostLeases: string(c.LostLeases),
		},
		States:      reaper.States(q.States),
		LeaseLength: time.Duration(q.LeaseLength), CountsAtClaim: q.CountsAtClaim, MaxAttempts: q.MaxAttempts,
		ExtraAttempts: q.ExtraAttempts, TimesInUTC: q.TimesInUTC, MaxLostLeases: q.MaxLostLeases,
		Only: reaper.Set(q.Only), OnReset: reaper.Set(q.OnReset), OnMove: reaper.Set(q.OnMove),
	}
}

// mapping is the entry for the commands.
func (e *entry) mapping(path, name string) mapping {
	m := mapping{
		file: path, name: name, production: e.Production, citus: e.Citus, colour: e.Colour, maxStale: e.MaxStale,
		settings: gates.Table{Name: orTable(e.Settings, "queue_config")},
		policy:   e.Backoff, kindPolicy: e.KindBackoff,
	}
	m.reaper = reaper.Config{
		Queue: e.Queue.table(), Gates: m.settings, DeadLetter: e.mover(), Backoff: policy(e.Backoff),
		Grace: time.Duration(e.Grace), Kinds: e.Kinds, ExceptKinds: e.ExceptKinds,
		CountUpTo: e.CountUpTo, LockTimeout: time.Duration(e.LockTimeout),
	}
	for kind, grace := range e.KindGrace {
		m.reaper.KindGrace = with(m.reaper.KindGrace, kind, time.Duration(grace))
	}
	for kind, p := range e.KindBackoff {
		m.reaper.KindBackoff = with(m.reaper.KindBackoff, kind, policy(&p))
	}
	m.letters = deadletter.Store{
		Table: deadletter.Table{Name: orTable(e.DeadLetters.Table, "job_dead_letter")},
		Queue: m.reaper.Queue.DeadLetterQueue(), InPlace: e.DeadLetters.InPlace,
		MovedAt: string(e.DeadLetters.MovedAt), LockTimeout: time.Duration(e.LockTimeout),
	}
	return m
}

// with adds a value to a map, which may be nil.
func with[T any](m map[string]T, key string, value T) map[string]T {
	if m == nil {
		m = map[string]T{}
	}
	m[key] = value
	return m
}

func orTable(name tableName, unset string) pgx.Identifier {
	if len(name) == 0 {
		return pgx.Identifier{unset}
	}
	return pgx.Identifier(name)
}

// policy is the library's default for a file that has none.
func policy(p *policyOf) backoff.Policy {
	if p == nil {
		return nil
	}
	if p.Fixed == nil && p.Power == 0 {
		return backoff.Exponential{Jitter: p.Jitter}
	}
	return p
}

func (e *entry) mover() deadletter.Mover {
	switch l := e.DeadLetters; {
	case l.InPlace:
		return deadletter.InPlace{}
	case len(l.Function) > 0:
		return deadletter.Function{Name: pgx.Identifier(l.Function)}
	default:
		return deadletter.Table{Name: orTable(l.Table, "job_dead_letter")}
	}
}

// check reports what is wrong with the entry.
func (e *entry) check() (faults []string) {
	if e.URL != "" && e.URLEnv != "" {
		faults = append(faults, "url and url_env are both set")
	}
	if e.Colour != "" && !slices.Contains(console.Colours(), e.Colour) {
		faults = append(faults, fmt.Sprintf("colour %q is none of %s", e.Colour, strings.Join(console.Colours(), ", ")))
	}
	if l := e.DeadLetters; l.InPlace && len(l.Table)+len(l.Function) > 0 {
		faults = append(faults, "dead_letters: in_place goes with no table and no function")
	} else if !l.InPlace && l.MovedAt != "" {
		faults = append(faults, "dead_letters: moved_at goes with in_place")
	}
	faults = append(faults, e.checkPolicies()...)
	return append(faults, e.checkMapping()...)
}

// checkMapping reports what the library says of it.
func (e *entry) checkMapping() (faults []string) {
	m := e.mapping("", "")
	for _, err := range []error{m.check(), m.settings.Validate()} {
		if err != nil {
			faults = append(faults, strings.Split(err.Error(), "\n")...)
		}
	}
	return faults
}

func (e *entry) checkPolicies() (faults []string) {
	if e.Backoff != nil {
		if fault := e.Backoff.check(); fault != "" {
			faults = append(faults, "backoff "+fault)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(e.KindBackoff)) {
		if fault := e.KindBackoff[kind].check(); fault != "" {
			faults = append(faults, fmt.Sprintf("kind_backoff of %q %s", kind, fault))
		}
	}
	return faults
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// connection is the connection string, and what it is called in an error. It is empty if the entry has
// none.
func (e *entry) connection() (url, called string, err error) {
	url = e.URL
	if e.URLEnv != "" {
		url = "${" + e.URLEnv + "}"
	}
	var unset []error
	url = variable.ReplaceAllStringFunc(url, func(text string) string {
		name := variable.FindStringSubmatch(text)[1]
		value := os.Getenv(name)
		if value == "" {
			unset = append(unset, misused("the variable %s is not set", name))
		}
		return value
	})
	if e.URLEnv != "" {
		return url, e.URLEnv, errors.Join(unset...)
	}
	return url, "url", errors.Join(unset...)
}

// poolConfig is how a database of the file is connected to, without flags.
func (e *entry) poolConfig() (*pgxpool.Config, error) {
	url, called, err := e.connection()
	if err != nil {
		return nil, err
	}
	t := tool{url: url, urlName: called}
	return t.poolConfig()
}
