package console

import (
	"log/slog"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/gates"
)

func (c *console) gates(rq *request) (*answer, error) {
	s, trouble, err := rq.db.snapshot(rq.Context())
	if err != nil {
		return nil, err
	}
	return &answer{page: "gates", title: "Gates", data: s.Gates, live: true, trouble: trouble}, nil
}

// openWord is what somebody types to open a gate or a window.
const openWord = "open"

// closedValue and openValue are what a gate's setting becomes.
func closedValue(key string) string { return boolText(key == gates.DryRunOnly) }
func openValue(key string) string   { return boolText(key != gates.DryRunOnly) }

func boolText(value bool) string {
	if value {
		return "true"
	}
	return "false"
}

// table is the settings table, if there is one.
func (rq *request) table() (*gates.Table, error) {
	if rq.db.settings == nil {
		return nil, badRequest("The gates of this database are not in a table. They cannot be changed here.")
	}
	return rq.db.settings, nil
}

// setGate sets the gate that a form names.
func (c *console) setGate(rq *request, value func(key string) string) (*answer, error) {
	table, err := rq.table()
	if err != nil {
		return nil, err
	}
	key := rq.PostForm.Get("key")
	if !isGate(key) {
		return nil, badRequest("There is no such gate.")
	}
	if err := table.Set(rq.Context(), rq.db.cfg.Act, rq.who.Actor, key, value(key)); err != nil {
		return nil, err
	}
	return rq.changedGates(slog.String("key", key), slog.String("value", value(key)))
}

// closeGate is one click: closing is safe.
func (c *console) closeGate(rq *request) (*answer, error) { return c.setGate(rq, closedValue) }

// openGate takes the word, typed.
func (c *console) openGate(rq *request) (*answer, error) {
	if err := rq.typed(openWord); err != nil {
		return nil, err
	}
	return c.setGate(rq, openValue)
}

func (c *console) closeWindow(rq *request) (*answer, error) {
	table, err := rq.table()
	if err != nil {
		return nil, err
	}
	if err := table.CloseWindow(rq.Context(), rq.db.cfg.Act, rq.who.Actor); err != nil {
		return nil, err
	}
	return rq.changedGates()
}

func (c *console) openWindow(rq *request) (*answer, error) {
	table, err := rq.table()
	if err != nil {
		return nil, err
	}
	if err := rq.typed(openWord); err != nil {
		return nil, err
	}
	duration, err := parseAge(rq.PostForm.Get("duration"))
	if err != nil {
		return nil, err
	}
	if duration < time.Second || duration > gates.MaxWindow {
		return nil, badRequest("A window takes a second to 30 days.")
	}
	if _, err := table.OpenWindow(rq.Context(), rq.db.cfg.Act, rq.who.Actor, duration); err != nil {
		return nil, err
	}
	return rq.changedGates(slog.Duration("window", duration))
}

// typed reports a word that was not typed as it should be.
func (rq *request) typed(word string) error {
	if strings.TrimSpace(strings.ToLower(rq.PostForm.Get("word"))) != word {
		return badRequest("To go on, type the word \"" + word + "\" in the field. Nothing was changed.")
	}
	return nil
}

// changedGates shows the gates as they are now: what was read before is forgotten.
func (rq *request) changedGates(did ...any) (*answer, error) {
	rq.db.expire()
	if wantsJSON(rq.Request) {
		s, trouble, err := rq.db.snapshot(rq.Context())
		if err != nil {
			return nil, err
		}
		return &answer{data: s.Gates, trouble: trouble, did: did}, nil
	}
	return &answer{goTo: "../gates", did: did}, nil
}
