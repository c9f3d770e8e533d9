package gates

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB begins transactions. It is a pool, a connection, or the caller's transaction, in
// which a change is made in a savepoint.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

var (
	_ DB = (*pgxpool.Pool)(nil)
	_ DB = (*pgx.Conn)(nil)
	_ DB = (pgx.Tx)(nil)
)

// MaxWindow is the longest duration that [Table.OpenWindow] accepts. To allow applies
// for longer, set [DryRunOnly] to false with [Table.Set].
const MaxWindow = 30 * 24 * time.Hour

// OpenWindow allows applies for a duration. It sets [DryRunOnly] to false and
// [WindowUntil] to the database's current time plus duration, and returns that end in
// UTC. It does not change the other two gates. It replaces the end of a window that is
// open already, also by an earlier one.
//
// It needs SELECT, INSERT and UPDATE on the table. It returns [ErrDuration] if duration
// is below a microsecond or above [MaxWindow]. Fractions of a microsecond are dropped.
// Otherwise it is like [Table.Set].
func (t Table) OpenWindow(
	ctx context.Context, db DB, actor string, duration time.Duration,
) (until time.Time, err error) {
	if err := errors.Join(checkActor(actor), checkDuration(duration)); err != nil {
		return time.Time{}, err
	}
	err = t.write(ctx, db, actor, func(now time.Time) []change {
		until = now.Add(duration).Truncate(time.Microsecond)
		return []change{
			{key: DryRunOnly, value: "false"},
			{key: WindowUntil, value: until.Format(time.RFC3339Nano)},
		}
	})
	if err != nil {
		return time.Time{}, err
	}
	return until, nil
}

// CloseWindow stops applies. It sets [DryRunOnly] to true and removes [WindowUntil],
// whether a window was open or not. So an old end does not refuse applies when the gate
// is opened later.
//
// After it has returned without an error, no apply that reads this table commits. If db
// is a transaction, that holds once it has committed. It needs SELECT, INSERT, UPDATE
// and DELETE on the table. Otherwise it is like [Table.Set].
func (t Table) CloseWindow(ctx context.Context, db DB, actor string) error {
	if err := checkActor(actor); err != nil {
		return err
	}
	return t.write(ctx, db, actor, func(time.Time) []change {
		return []change{{key: DryRunOnly, value: "true"}, {key: WindowUntil, unset: true}}
	})
}

// Set stores the value of a setting. It returns [ErrKey] if key is not one of [Keys], a
// [*ValueError] if value is invalid for the key, [ErrActor] if actor is empty or not
// text, and [ErrColumn] if value does not fit the type of the column value. Text is
// stored unchanged. In a column of type jsonb a gate is stored as a boolean and the
// backoff base as a number.
//
// Set writes two columns that no source reads: updated_by, the actor, and updated_at,
// the time of the change by the database's clock. The role needs SELECT, INSERT and
// UPDATE on the table.
//
// Set is a fence, also for a setting that had no row: it waits for the applies in
// progress, and later applies wait for it. For that it locks the table in EXCLUSIVE
// mode. So a stream of applies cannot make it wait for ever, and plain reads of the
// table do not wait. In the caller's transaction the lock is held until that ends.
//
// After an error nothing has changed, except when the connection broke during
// the commit. Then Set is safe to repeat.
func (t Table) Set(ctx context.Context, db DB, actor, key, value string) error {
	err := errors.Join(checkActor(actor), Values{key: value}.Check(key))
	if err != nil {
		return err
	}
	return t.write(ctx, db, actor, func(time.Time) []change {
		return []change{{key: key, value: value}}
	})
}

// Unset removes a setting, so that its default holds: a gate is closed, there is no
// window, the backoff base is 10. If the setting is unset already, nothing changes. The
// actor is stored in the row before the row is deleted, so that a trigger on the table
// sees who removed it. Unset also needs DELETE on the table. Otherwise it is like
// [Table.Set].
func (t Table) Unset(ctx context.Context, db DB, actor, key string) error {
	if err := errors.Join(checkActor(actor), Values{}.Check(key)); err != nil {
		return err
	}
	return t.write(ctx, db, actor, func(time.Time) []change {
		return []change{{key: key, unset: true}}
	})
}

func checkActor(actor string) error {
	switch {
	case strings.TrimSpace(actor) == "":
		return fmt.Errorf("%w: it is empty", ErrActor)
	case !utf8.ValidString(actor) || strings.ContainsRune(actor, 0):
		return fmt.Errorf("%w: %q is not text", ErrActor, actor)
	}
	return nil
}

func checkDuration(duration time.Duration) error {
	if duration < time.Microsecond || duration > MaxWindow {
		return fmt.Errorf("%w: %v", ErrDuration, duration)
	}
	return nil
}
