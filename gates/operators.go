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

// DB begins transactions: a pool, a connection, or a transaction of the caller's,
// in which a change is made in a savepoint.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

var (
	_ DB = (*pgxpool.Pool)(nil)
	_ DB = (*pgx.Conn)(nil)
	_ DB = (pgx.Tx)(nil)
)

// MaxWindow is the longest that [Table.OpenWindow] opens a window for. A longer
// one would be forgotten as an open gate is; who wants none to end sets the gate.
const MaxWindow = 30 * 24 * time.Hour

// OpenWindow lets applies through for a time: it sets [DryRunOnly] to false and
// [WindowUntil] to duration after now, by the database's clock when the change is
// made, and returns that end in UTC. The other two gates stay as they are. A
// window that is open already ends at the new time instead, be it earlier.
//
// It needs SELECT, INSERT and UPDATE on the table. A duration below a microsecond
// or above [MaxWindow] is [ErrDuration]; fractions of a microsecond are dropped.
// For the rest it is like [Table.Set].
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

// CloseWindow stops applies: it sets [DryRunOnly] to true and removes
// [WindowUntil], whether a window was open or not. So all is as before the
// window, and a gate that is opened later is not closed by the old end.
//
// When it has returned without an error, and the caller's transaction has committed
// if db is one, no apply that reads this table commits any more. It needs SELECT,
// INSERT, UPDATE and DELETE on the table. For the rest it is like [Table.Set].
func (t Table) CloseWindow(ctx context.Context, db DB, actor string) error {
	if err := checkActor(actor); err != nil {
		return err
	}
	return t.write(ctx, db, actor, func(time.Time) []change {
		return []change{{key: DryRunOnly, value: "true"}, {key: WindowUntil, unset: true}}
	})
}

// Set gives a setting a value, as it is written. A key that is not one of [Keys]
// is [ErrKey], a value that does not mean what the key needs a [*ValueError], an
// actor that is empty or not text [ErrActor]. In a column of jsonb a gate's value
// is stored as a boolean and the backoff base as a number. A column whose type
// does not take the value is [ErrColumn].
//
// The table needs two more columns than for reading: updated_by, which becomes
// the actor, and updated_at, which becomes the time of the change by the
// database's clock. The role needs SELECT, INSERT and UPDATE on the table.
//
// It is a fence both ways, also for a setting that had no row: it waits for the
// applies under way, and later ones wait for it. It waits with a lock on the
// table in EXCLUSIVE mode, so reapers that come and go cannot keep it waiting for
// ever, and plain readers of the table are not held up. In a transaction of the
// caller's the lock stays, and the fence stands, until that ends.
//
// After an error nothing has changed, except when the connection broke during
// the commit. Setting again is safe either way.
func (t Table) Set(ctx context.Context, db DB, actor, key, value string) error {
	err := errors.Join(checkActor(actor), Values{key: value}.Check(key))
	if err != nil {
		return err
	}
	return t.write(ctx, db, actor, func(time.Time) []change {
		return []change{{key: key, value: value}}
	})
}

// Unset removes a setting, so that its default holds: a gate is closed, no
// window bounds anything, the backoff base is 10. Where it is unset already,
// nothing changes. The row is signed with the actor before it is deleted, so that
// a trigger on the table sees who removed it. It also needs DELETE on the table.
// For the rest it is like [Table.Set].
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
