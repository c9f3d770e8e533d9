package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Level is what somebody may do. Each level includes those before it.
type Level int

// The levels. The zero value is none.
const (
	LevelNone  Level = iota // nothing
	LevelLook               // read all pages
	LevelAct                // apply a plan, redrive, purge, rehearse, close gates
	LevelGates              // open gates and windows
)

// String is the word for a level on the pages and in the log.
func (l Level) String() string {
	switch l {
	case LevelLook:
		return "look"
	case LevelAct:
		return "act"
	case LevelGates:
		return "gates"
	}
	return "none"
}

// caller is who asks.
type caller struct {
	Actor string
	Level Level
}

// errNobody is the answer to a caller whom Access does not know.
var errNobody = errors.New("console: access: unknown caller")

// caller asks Access. A level above look without an actor is look: what is changed is
// stored under a name.
func (c *console) caller(r *http.Request) (caller, error) {
	if c.cfg.Access == nil {
		return caller{Level: LevelLook}, nil
	}
	actor, level, err := c.cfg.Access(r)
	if err != nil {
		return caller{}, fmt.Errorf("%w: %w", errNobody, err)
	}
	actor = strings.TrimSpace(actor)
	if actor == "" {
		level = min(level, LevelLook)
	}
	return caller{Actor: actor, Level: level}, nil
}

// refusal says why a caller may not do what needs a level, or is nil.
func (who caller) refusal(needs Level, db *database) *failure {
	switch {
	case who.Level < needs && needs == LevelLook:
		return &failure{status: http.StatusForbidden, Text: "You may not look at this console."}
	case who.Level < needs:
		return &failure{status: http.StatusForbidden, Text: fmt.Sprintf(
			"You may not do this. It takes the level %q with a name; yours is %q.", needs, who.Level)}
	case needs > LevelLook && db != nil && !db.acts():
		return &failure{status: http.StatusForbidden, Text: "Nothing can be changed in this database: " +
			"the console has no connection to it that may write."}
	}
	return nil
}
