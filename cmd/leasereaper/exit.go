package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// What the exit status says to a script.
const (
	exitDone    = 0
	exitError   = 1 // it went wrong, or not all of it was done
	exitUsage   = 2 // it was called wrongly, and nothing was tried
	exitRefused = 3 // a gate is closed, or the like: nothing was changed
)

// usageError says what is wrong with how the tool was called.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func misused(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// refusedError is a refusal's reason.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return "refused: " + e.reason }

// refused makes an error of a refusal, or nil when there was none.
func refused(is bool, reason string) error {
	if !is {
		return nil
	}
	return &refusedError{reason}
}

var (
	errDeclined    = errors.New("not confirmed; nothing was changed")
	errInterrupted = errors.New("interrupted")
)

// status is the exit status for an error. One that came up before the command
// began is about how it was called.
func (t *tool) status(err error) int {
	var usage *usageError
	var refusal *refusedError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errInterrupted):
		return exitError
	case errors.As(err, &refusal):
		return exitRefused
	case errors.As(err, &usage), errors.Is(err, deadletter.ErrQueue), !t.began:
		return exitUsage
	}
	return exitError
}

// hints says what may be done about an error.
func hints(err error) []string {
	var refusal *refusedError
	switch {
	case errors.As(err, &refusal):
		return refusalHints(refusal.reason)
	case unknown(err):
		return []string{"it happened whole or not at all; look, then call again: what was done is not done twice"}
	case errors.Is(err, reaper.ErrReadOnly), errors.Is(err, deadletter.ErrReadOnly):
		return []string{"changes need the primary server and a connection that may write"}
	}
	return nil
}

// unknown reports that nobody can know whether a change was made.
func unknown(err error) bool {
	return errors.Is(err, reaper.ErrOutcomeUnknown) || errors.Is(err, deadletter.ErrOutcomeUnknown)
}

func refusalHints(reason string) []string {
	key, _, _ := strings.Cut(reason, "=")
	switch key {
	case gates.SubstrateEnabled, gates.ReaperEnabled:
		return []string{"nothing was changed; to open this gate: leasereaper gates set " + key + " true"}
	case gates.DryRunOnly:
		return []string{
			"nothing was changed; to open this gate for a time: leasereaper window open 1h",
			"for good: leasereaper gates set " + key + " false",
		}
	case gates.WindowUntil:
		return []string{"nothing was changed; the window is over, to open one: leasereaper window open 1h"}
	case reaper.ReasonMaxStaleExceeded:
		return []string{"nothing was changed; look at the dry run, then raise --max-stale"}
	}
	return []string{"nothing was changed"}
}
