package console

import (
	"context"
	"log/slog"
	"reflect"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// OfFleet makes a [Config.Members] of a fleet's list. A member over a *pgxpool.Pool can be
// looked at and acted on. A member of reaper/fleet/citus can only be looked at: act on the
// coordinator. Members over another DB are left out. What an address cannot hold of a name
// becomes "-".
func OfFleet(list func(context.Context) ([]fleet.Member, error)) func(context.Context) ([]Database, error) {
	return func(ctx context.Context) ([]Database, error) {
		members, err := list(ctx)
		if err != nil {
			return nil, err
		}
		var databases []Database
		for _, m := range members {
			d := Database{Name: address(m.Name), Reaper: m.Config}
			switch db := m.DB.(type) {
			case *pgxpool.Pool:
				d.Look, d.Act = db, db
			case *pgtx.Guarded:
				d.Look = db.Pool
			default:
				continue
			}
			databases = append(databases, d)
		}
		return databases, nil
	}
}

// unfit are characters that a database's name does not have here.
var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func address(name string) string {
	name = unfit.ReplaceAllString(name, "-")
	return name[max(0, len(name)-longestName):] // the end tells shards apart
}

const (
	// membersFresh is for how many times Fresh a list of databases is used.
	membersFresh = 30

	// membersTimeout bounds the wait for a list: nobody is answered meanwhile.
	membersTimeout = 2 * time.Second
)

// known are the databases of a moment.
type known struct {
	list   []*database
	byName map[string]*database
}

func (k *known) add(db *database) {
	k.list = append(k.list, db)
	k.byName[db.Name()] = db
}

// listing knows which databases there are.
type listing struct {
	fixed   []*database
	members func(context.Context) ([]Database, error) // nil: the fixed ones alone
	fresh   time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	asked   time.Time
	failing bool
	current known
}

// now returns the databases, and asks for the list again when it is old.
func (l *listing) now(ctx context.Context) known {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members != nil && time.Since(l.asked) >= membersFresh*l.fresh {
		l.asked = time.Now()
		l.refresh(ctx)
	}
	return l.current
}

// last returns the databases that the last request knew.
func (l *listing) last() known {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// refresh asks for the list. After an error the last one stays.
func (l *listing) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), membersTimeout)
	defer cancel()
	databases, err := l.members(ctx)
	if err != nil {
		if !l.failing {
			l.log.Warn("console cannot list databases", slog.String("error", err.Error()))
		}
		l.failing = true
		return
	}
	l.failing = false
	next := knownOf(l.fixed)
	seen := map[string]bool{reserved: true}
	for _, db := range l.fixed {
		seen[db.Name()] = true
	}
	for _, d := range databases {
		if fault := d.fault(seen); fault != "" {
			l.log.Warn("console leaves a database out", slog.String("database", d.Name), slog.String("fault", fault))
			continue
		}
		seen[d.Name] = true
		if db := l.database(d); db != nil {
			next.add(db)
		}
	}
	l.current = next
}

// database returns what is known of a database already, unless it is another now.
func (l *listing) database(d Database) *database {
	if db := l.current.byName[d.Name]; db != nil && db.is(d) {
		return db
	}
	db, err := newDatabase(d, l.fresh, l.log)
	if err != nil {
		l.log.Warn("console leaves a database out", slog.String("database", d.Name), slog.String("fault", err.Error()))
		return nil
	}
	return db
}

// is reports whether a database of a list is this one. With a hook in it, it never is, and
// what was read is read again.
func (d *database) is(listed Database) bool {
	was := d.given
	if was.Look != listed.Look || was.Act != listed.Act {
		return false
	}
	was.Reaper.Logger, listed.Reaper.Logger = nil, nil
	return reflect.DeepEqual(was, listed) //nolint:govet // a configuration holds no errors
}

func knownOf(databases []*database) known {
	k := known{byName: map[string]*database{}}
	for _, db := range databases {
		k.add(db)
	}
	return k
}
