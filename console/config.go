package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// Config says what the console shows, and to whom.
type Config struct {
	// Databases are shown in this order, with a switch between them. At least one is
	// required, unless there are Members.
	Databases []Database

	// Members lists further databases, which come and go. It is asked again when somebody
	// looks and the list is older than thirty times Fresh, for two seconds at most; after an error the last
	// list stays. One that cannot be shown is left out and logged. With it, Databases may be
	// empty. [OfFleet] makes one of a fleet's list. Default nil: there are no others.
	Members func(ctx context.Context) ([]Database, error)

	// Access says who asks and what they may do. It is called for each request except
	// those for the stylesheet, the script and the icon. An error is answered with 401
	// and logged. A level above [LevelLook] needs an actor. Default nil: everybody may
	// look, and nobody may act.
	Access func(r *http.Request) (actor string, level Level, err error)

	// ShowPayloads shows the whole queue row of a dead letter, payload and all, to
	// everybody who may look. Default false: payloads are not read from the database.
	ShowPayloads bool

	// Redact is called with each queue row before it is shown, and returns what to show
	// instead. It may return nil to hide the row. With Redact that lets too much
	// through, people read what they should not. Default nil: rows are shown as they are.
	Redact func(kind string, job json.RawMessage) json.RawMessage

	// Fresh is how long what was read is shown to others who ask for the same page. Too
	// short, and many open pages are many queries; too long, and pages are old. Default
	// 1 s.
	Fresh time.Duration

	// TrustedOrigins are further origins, as in https://ops.example.com, whose pages
	// may send forms. A proxy that changes the Host header needs its own origin here.
	// Default: the console's own.
	TrustedOrigins []string

	// Logger gets an Info record for each change that somebody makes, and what
	// went wrong. Default nil: nothing is logged.
	Logger *slog.Logger
}

// Database is one queue with its settings and dead letters.
type Database struct {
	// Name stands in the header and in addresses: letters, digits, "-" and "_".
	Name string

	// Colour marks the database in the header, so that nobody takes one for another:
	// one of Colours. Default "grey".
	Colour string

	// Look reads, in read-only transactions. Its role needs SELECT alone. It is required.
	Look *pgxpool.Pool

	// Act changes things. It may be the same pool, or one with another role. Default
	// nil: nobody can change anything here.
	Act *pgxpool.Pool

	// Reaper maps the tables, and says which leases are stale. It should be what the
	// loop has, or the console shows other leases than the loop reaps. A CountUpTo of 0 is
	// 10,000 here. Settings can be changed if Gates is a gates.Table, and dead letters
	// are shown if DeadLetter is a deadletter.Table or a deadletter.InPlace; nil counts as
	// either table. A source of gates of your own is read in a read-only transaction too.
	Reaper reaper.Config

	// Letters is where the dead letters are. It is needed for letters in place that have a
	// time, which is its MovedAt, and where the mover is your own; its Queue should be
	// that of Reaper. Default nil: what Reaper.DeadLetter says, without a MovedAt.
	Letters *deadletter.Store

	// History reads what was applied, if the service keeps an audit table. [Audit] is
	// one. Default nil: there is no page for it.
	History History

	// Passes shows the last passes of a loop in this process. Default nil: they are not
	// shown.
	Passes *Passes
}

// Colours are the names of colours that a Database may have.
func Colours() []string {
	return []string{"grey", "red", "amber", "green", "teal", "blue", "violet", "pink"}
}

// Errors of New.
var (
	// ErrNoDatabase is wrapped by the error for a Config without a database.
	ErrNoDatabase = errors.New("console: no database")

	// ErrDatabase is wrapped by the error for each fault of a Database: a name that is
	// missing, impossible or there twice, an unknown colour, a missing pool.
	ErrDatabase = errors.New("console: invalid database")

	// ErrNegative is wrapped by the error for a negative setting.
	ErrNegative = errors.New("console: negative setting")
)

const (
	defaultFresh     = time.Second
	defaultCountUpTo = 10_000
)

// names of databases stand in addresses.
var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

const (
	longestName = 40
	reserved    = "static" // the folder of the stylesheet
)

// check reports every fault of the configuration at once, as far as the library does
// not report it.
func (c *Config) check() error {
	var faults []error
	if len(c.Databases) == 0 && c.Members == nil {
		faults = append(faults, ErrNoDatabase)
	}
	if c.Fresh < 0 {
		faults = append(faults, fmt.Errorf("%w: Fresh", ErrNegative))
	}
	seen := map[string]bool{reserved: true}
	for _, d := range c.Databases {
		if fault := d.fault(seen); fault != "" {
			faults = append(faults, fmt.Errorf("%w %q: %s", ErrDatabase, d.Name, fault))
		}
		seen[d.Name] = true
	}
	return errors.Join(faults...)
}

func (d *Database) fault(seen map[string]bool) string {
	var faults []string
	if !names.MatchString(d.Name) {
		faults = append(faults, `the name takes 1 to 40 letters, digits, "-" and "_"`)
	}
	if seen[d.Name] {
		faults = append(faults, "the name is taken")
	}
	if d.Colour != "" && !slices.Contains(Colours(), d.Colour) {
		faults = append(faults, fmt.Sprintf("unknown colour %q", d.Colour))
	}
	if d.Look == nil {
		faults = append(faults, "Look is nil")
	}
	return strings.Join(faults, "; ")
}
