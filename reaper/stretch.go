package reaper

import (
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// place is where a claim begins in the order of leases. Its zero value is before
// every lease.
type place struct {
	leaseUntil pgtype.Timestamptz
	id         *string // nil: behind every job of that lease end
}

// stretch is a part of the order of leases. Its zero value is all of it.
type stretch struct {
	behind place
	upTo   pgtype.Timestamptz // the last lease end that belongs to it; NULL: there is none
}

// leap cuts a stretch of stale leases in two, at a lease end that chance picks,
// and returns the far part and the near one. The near one is nil where nothing can
// be cut: in an instant, or from -infinity on. A stretch of more than 292 years,
// which a Duration cannot hold, is cut in its last 292.
func (s stretch) leap(staleBefore time.Time) (far stretch, near *stretch) {
	end := staleBefore
	if s.upTo.Valid {
		end = s.upTo.Time
	}
	gap := end.Sub(s.behind.leaseUntil.Time).Microseconds()
	if gap <= 0 || s.behind.leaseUntil.InfinityModifier != pgtype.Finite {
		return s, nil
	}
	at := toServer(end.Add(-micros(rand.N(gap))))
	return stretch{behind: place{leaseUntil: at}, upTo: s.upTo}, &stretch{behind: s.behind, upTo: at}
}
