package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// complain prints an error: in one line and for people, or with --json as an object.
func (t *tool) complain(err error) {
	if t.json {
		t.complainJSON(err)
		return
	}
	fmt.Fprintln(t.errs, "leasereaper:", message(err))
	for _, line := range hints(err) {
		fmt.Fprintln(t.errs, "  ", line)
	}
	if t.status(err) == exitUsage {
		fmt.Fprintln(t.errs, "   leasereaper --help says how it is called")
	}
}

// failed is an error as JSON.
type failed struct {
	Error    string   `json:"error"`
	SQLState string   `json:"sqlstate,omitempty"`
	Reason   string   `json:"reason,omitempty"` // of a refusal
	Hints    []string `json:"hints,omitempty"`
	Status   int      `json:"status"` // the exit status
}

// complainJSON prints the object to stderr: stdout has the result, if there is one.
func (t *tool) complainJSON(err error) {
	f := failed{Error: message(err), Hints: hints(err), Status: t.status(err)}
	var refusal *refusedError
	if errors.As(err, &refusal) {
		f.Reason = refusal.reason
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		f.SQLState = server.Code
	}
	encoder := json.NewEncoder(t.errs)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(f) // nobody is left to tell
}

// packages are the names of packages that begin an error. They tell a user nothing.
var packages = regexp.MustCompile(
	`(^|[\s:])(?:reaper|deadletter|gates|backoff|console|citus|fleet|pgx|pgconn|pgxpool|scany|dbscan|pgxscan): `)

// message is an error in one line. What several lines say is said once: pgx gives a line
// to each way of connecting that it tried, often the same one twice.
func message(err error) string {
	if errors.Is(err, errInterrupted) {
		return errInterrupted.Error()
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(packages.ReplaceAllString(line, "$1"))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return clean(strings.Join(lines, " "))
}
