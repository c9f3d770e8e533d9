package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/reaper"
)

const (
	// readyTimeout bounds a check of the database.
	readyTimeout = 2 * time.Second

	// readyFor and unreadyFor are how long the result of a check is kept, so that any
	// number of probes cost the database little.
	readyFor   = 10 * time.Second
	unreadyFor = time.Second
)

// readiness knows whether this worker can do jobs.
type readiness struct {
	loop *reaper.Reaper

	mu     sync.Mutex
	reason string    // why not; empty: it can
	until  time.Time // the reason is kept
}

// check returns why the worker cannot do jobs, or nothing. It does not end with ctx,
// because others wait for the same result.
func (c *readiness) check(ctx context.Context) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.reason
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	keep := readyFor
	c.reason = c.ask(ctx)
	if c.reason != "" {
		keep = unreadyFor
	}
	c.until = time.Now().Add(keep)
	return c.reason
}

// ask has the library check the tables. Only what keeps jobs from being done counts: a
// setting that does not parse stops the reaper and no worker.
func (c *readiness) ask(ctx context.Context) string {
	report, err := c.loop.Verify(ctx)
	if err != nil {
		return unchecked(err)
	}
	var reasons []string
	for _, p := range report.Problems {
		if p.Severity == reaper.SeverityError && slices.Contains(blocking, p.Code) {
			reasons = append(reasons, fmt.Sprintf("%s: %s", p.Object, p.Message))
		}
	}
	return strings.Join(reasons, "\n")
}

// unchecked says why the tables could not be checked.
func unchecked(err error) string {
	var away *pgconn.ConnectError
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &away):
		return "database out of reach"
	case errors.As(err, &pgErr):
		return "the tables cannot be checked: " + pgErr.Message
	}
	return fmt.Sprintf("the database does not answer within %v", readyTimeout)
}

// blocking are the problems of a set-up that keep a worker from doing jobs.
var blocking = []string{
	reaper.CodeTableMissing, reaper.CodeColumnMissing, reaper.CodePrivilegeMissing,
	reaper.CodeReadOnly, reaper.CodeStandby,
}
