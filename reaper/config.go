package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/stmt"
)

// DB begins transactions: a pool, a connection, or a transaction of the
// caller's, in which everything then happens inside a savepoint. A DB that also
// has pgx's BeginTx is asked for the isolation level that each call needs,
// whatever the database's default is; a DB without it gives what it gives.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

var (
	_ DB = (*pgxpool.Pool)(nil)
	_ DB = (*pgx.Conn)(nil)
	_ DB = (pgx.Tx)(nil)
)

// Config says which queue to reap and how. Its zero value is the reference
// schema's set-up.
type Config struct {
	// Queue maps the queue's table, columns and states. A wrong mapping reaps
	// the wrong rows or none. Default: the reference schema's job_queue.
	Queue Table

	// Gates decides whether an apply may go ahead. A source that opens too
	// easily reaps where operators meant to prevent it. Default: [gates.Table]
	// over queue_config.
	Gates gates.Source

	// DeadLetter stores jobs whose attempts are used up. Default:
	// [deadletter.Table] over job_dead_letter.
	DeadLetter deadletter.Mover

	// Backoff is the wait before a job's next try. Too short, and a job that
	// kills its workers kills many; too long, and work lies idle. Default:
	// [backoff.Exponential] without jitter, over the operators' base.
	Backoff backoff.Policy

	// KindBackoff is Backoff for single kinds, spelled just so, also where the column is a
	// citext. Default: Backoff for all.
	KindBackoff map[string]backoff.Policy

	// Grace is how far past its end a lease must be to count as stale, by the
	// database's clock. It is rounded down to whole microseconds; one above 0 that
	// rounds to 0 is [ErrGrace]. If it is too short for workers that renew late, their
	// jobs are given to others while they run; if it is too long, dead workers' jobs
	// wait. Default 0: stale at once.
	Grace time.Duration

	// Kinds are the kinds of jobs that this reaper reaps, as the queue's column
	// of kinds has them; a job without a kind counts as of the kind "". The others
	// are as if they were not there, for a dry run and MaxStale too. A kind that
	// no reaper reaps hangs when its worker dies. Default nil: all. A list that is
	// empty and not nil is [ErrKind], since an empty list does not mean all.
	Kinds []string

	// ExceptKinds are kinds that this reaper does not reap, also when Kinds has
	// them. Default: none.
	ExceptKinds []string

	// KindGrace is Grace for single kinds, such as one whose heartbeats are slower.
	// It may be shorter or longer than Grace, and is rounded as Grace is; 0 is stale
	// at once. With it [Reaper.Run] reads all live leases at each poll, to know which
	// expires next. Default: Grace for all.
	KindGrace map[string]time.Duration

	// MaxStale refuses an apply that finds more stale leases than this, as
	// [ReasonMaxStaleExceeded]: then more than a dead worker has
	// happened, and a person should look with DryRun. Then raise it, or drain with a
	// Reaper that has none. Too low, and an ordinary crash of a large
	// worker stops the reaper; too high, and it guards nothing. Default 0: no
	// maximum.
	MaxStale int

	// CountUpTo is how far a dry run counts stale leases: it stops there, and says
	// so. The count of a million takes a hundred milliseconds or more, whatever the
	// limit is. Too low, and operators cannot tell a crash from a disaster.
	// Default 0: all of them.
	CountUpTo int

	// LockTimeout is how long a statement of the reaper's own transactions waits
	// for a lock: a foreign key's parent, a unique key of an open transaction, a
	// table under DDL. A row that waits longer is a [Failure] with the SQLSTATE
	// 55P03; the others are reaped. A table that is locked for longer is an error
	// with that SQLSTATE. A transaction of the caller's keeps the caller's setting. Too
	// low, and jobs fail because of another's short transaction; too high, and one long
	// transaction delays a whole batch, which keeps its own rows and the gates locked
	// meanwhile. It is rounded up to whole milliseconds, of which PostgreSQL takes
	// 2147483647 at most; more is [ErrLockTimeout]. Default 0: one second.
	LockTimeout time.Duration

	// OnApply is called inside the transaction of an apply that changed
	// something, just before the commit: for an audit row, an outbox, a NOTIFY.
	// An error or a panic in it rolls everything back and becomes the apply's
	// error. It may be called again for the same jobs, when the first
	// transaction fails. Default nil.
	OnApply func(ctx context.Context, tx pgx.Tx, result *ApplyResult) error

	// Logger gets one Info record for each apply that changed something, and
	// what [Reaper.Run] meets. Records hold counts and names, never a payload.
	// Default nil: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Queue = c.Queue.withDefaults()
	if c.Gates == nil {
		c.Gates = gates.Table{}
	}
	if c.DeadLetter == nil {
		c.DeadLetter = deadletter.Table{}
	}
	if c.Backoff == nil {
		c.Backoff = backoff.Exponential{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.KindBackoff = maps.Clone(c.KindBackoff)
	c.LockTimeout = cmp.Or(c.LockTimeout, defaultLockTimeout)
	return c
}

func (c Config) validate() error {
	faults := []error{checkGrace("Grace", c.Grace), checkLockTimeout(c.LockTimeout)}
	if c.MaxStale < 0 {
		faults = append(faults, fmt.Errorf("%w: MaxStale %d", ErrNegative, c.MaxStale))
	}
	if c.CountUpTo < 0 {
		faults = append(faults, fmt.Errorf("%w: CountUpTo %d", ErrNegative, c.CountUpTo))
	}
	for _, kind := range slices.Sorted(maps.Keys(c.KindBackoff)) {
		faults = append(faults, checkKind(kind), checkPart(fmt.Sprintf("KindBackoff of %q", kind), c.KindBackoff[kind]))
	}
	if c.Queue.Columns.JobKind == None && len(c.KindBackoff) > 0 {
		faults = append(faults, fmt.Errorf("%w: the queue has no column of kinds", ErrKind))
	}
	return errors.Join(append(faults,
		validateScope(c.scope(), c.Queue.Columns.JobKind == None),
		checkPart("Gates", c.Gates),
		checkPart("DeadLetter", c.DeadLetter),
		checkPart("Backoff", c.Backoff),
	)...)
}

// backoffOf is the policy of a kind.
func (c *Config) backoffOf(kind string) backoff.Policy {
	if policy, ok := c.KindBackoff[kind]; ok {
		return policy
	}
	return c.Backoff
}

// scope is which leases are this reaper's.
func (c Config) scope() stmt.Scope {
	return stmt.Scope{Kinds: c.Kinds, Except: c.ExceptKinds, Grace: c.Grace, ByKind: c.KindGrace}
}

// validateScope reports every fault. kindless says that the queue has no kinds.
func validateScope(s stmt.Scope, kindless bool) error {
	var faults []error
	if kindless && !s.Uniform() {
		faults = append(faults, fmt.Errorf("%w: the queue has no job_kind column", ErrKind))
	}
	if s.Kinds != nil && len(s.Kinds) == 0 {
		faults = append(faults, fmt.Errorf("%w: Kinds is empty; use nil for all kinds", ErrKind))
	}
	for _, kind := range append(append([]string{}, s.Kinds...), s.Except...) {
		faults = append(faults, checkKind(kind))
	}
	for _, kind := range slices.Sorted(maps.Keys(s.ByKind)) {
		faults = append(faults, checkKind(kind), checkGrace(fmt.Sprintf("KindGrace of %q", kind), s.ByKind[kind]))
	}
	return errors.Join(faults...)
}

// checkGrace reports a grace that is negative, or that is one and would be none.
func checkGrace(name string, grace time.Duration) error {
	switch {
	case grace < 0:
		return fmt.Errorf("%w: %s %v", ErrNegative, name, grace)
	case grace > 0 && grace < time.Microsecond:
		return fmt.Errorf("%w: %s %v", ErrGrace, name, grace)
	}
	return nil
}

// checkKind reports a kind that no job can have.
func checkKind(kind string) error {
	if strings.ContainsRune(kind, 0) || !utf8.ValidString(kind) {
		return fmt.Errorf("%w: %q is not text", ErrKind, kind)
	}
	return nil
}

const (
	defaultLockTimeout = time.Second

	// maxLockTimeout is PostgreSQL's largest lock_timeout, in milliseconds.
	maxLockTimeout = math.MaxInt32
)

func checkLockTimeout(timeout time.Duration) error {
	switch {
	case timeout < 0:
		return fmt.Errorf("%w: LockTimeout %v", ErrNegative, timeout)
	case timeout > maxLockTimeout*time.Millisecond:
		return fmt.Errorf("%w: %v", ErrLockTimeout, timeout)
	}
	return nil
}

// checkPart reports the faults of a part of Config, which may have a Validate that
// knows them.
func checkPart(name string, part any) error {
	if isNil(part) {
		return fmt.Errorf("%w: %s is a %T", ErrNilPart, name, part)
	}
	v, ok := part.(interface{ Validate() error })
	if !ok {
		return nil
	}
	return recoverPanic("reaper: Validate of "+name, v.Validate)
}

// isNil also sees the nil pointer or function inside an interface, which a pool
// that was never opened is.
func isNil(part any) bool {
	v := reflect.ValueOf(part)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}
