package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/gates"
)

// closeTimeout is how long the close of one member's gate may take.
const closeTimeout = 5 * time.Second

// CloseGates closes the gate [gates.ReaperEnabled] of every member, with [gates.Table.Set]:
// once it is closed, no apply commits. It is for the day on which everything must stop. It
// asks all members at once, and gives each five seconds, or less if ctx ends before. If all
// connections of a member's pool are in use, it makes one of its own. A member whose source
// is not a [gates.Table] has the error [ErrGateSource].
//
// If some were not closed, the error is a [*NotClosedError] with their names. The gate of a
// member whose time ended may be closed nevertheless. Calling again is safe.
//
// If Members fails, or takes more than five seconds or half the time of ctx, CloseGates closes
// the gates of the last list that this Fleet has had, if it has had one. Then the error also
// wraps that of Members, since there may be members that it does not know.
func (f *Fleet) CloseGates(ctx context.Context, actor string) ([]Outcome[struct{}], error) {
	members, err := f.listToClose(ctx)
	if known := f.known.Load(); err != nil && known != nil {
		members = *known
	}
	outcomes := each(ctx, members, len(members), func(ctx context.Context, m Member) (*struct{}, error) {
		return &struct{}{}, m.closeGate(ctx, actor)
	})
	var open []string
	for i := range outcomes {
		if outcomes[i].Err != nil {
			outcomes[i].Result = nil
			open = append(open, outcomes[i].Member)
		}
	}
	if len(open) > 0 {
		err = errors.Join(err, &NotClosedError{Members: open})
	}
	return outcomes, err
}

// listToClose asks for the members, for a part of the time if there is an earlier list.
func (f *Fleet) listToClose(ctx context.Context) ([]Member, error) {
	if f.known.Load() == nil {
		return f.list(ctx)
	}
	wait := closeTimeout
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return f.list(ctx)
}

// closeGate closes the gate of one member.
func (m Member) closeGate(ctx context.Context, actor string) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	source := m.Config.Gates
	if source == nil {
		source = gates.Table{}
	}
	table, ok := source.(gates.Table)
	if !ok {
		return fmt.Errorf("%w: it is a %T", ErrGateSource, source)
	}
	db := m.DB
	if pool, ok := db.(*pgxpool.Pool); ok && pool.Stat().AcquiredConns() >= pool.Stat().MaxConns() {
		conn, err := connect(ctx, pool.Config())
		if err != nil {
			return fmt.Errorf("fleet: connect: %w", err)
		}
		defer conn.Close(ctx) //nolint:errcheck // it is not used any more
		db = conn
	}
	return table.Set(ctx, db, actor, gates.ReaperEnabled, "false")
}

// connect makes a connection as a pool does.
func connect(ctx context.Context, cfg *pgxpool.Config) (*pgx.Conn, error) {
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil || cfg.AfterConnect == nil {
		return conn, err
	}
	if err := cfg.AfterConnect(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}
