package interleave

import (
	"errors"
	"fmt"
	"strings"
)

// Loss is what the network loses of an exchange.
type Loss int

const (
	// LoseNothing lets an exchange go through.
	LoseNothing Loss = iota
	// LoseMessage ends the connection before the message arrives.
	LoseMessage
	// LoseAnswer ends the connection after the server has answered.
	LoseAnswer
)

// marks are how a loss is written, behind the participant's letter.
const marks = " -+"

// Action lets a participant go on with its next exchange.
type Action struct {
	Who  int // from 0
	Loss Loss
}

// String is the participant's letter, followed by - where the message is lost and by +
// where the answer is.
func (a Action) String() string {
	return strings.TrimSpace(string([]byte{byte('a' + a.Who), marks[a.Loss]}))
}

// Schedule is who went on, in order.
type Schedule []Action

func (s Schedule) String() string {
	var text strings.Builder
	for _, action := range s {
		text.WriteString(action.String())
	}
	return text.String()
}

// Cuts reports whether a connection is lost in the schedule.
func (s Schedule) Cuts() bool {
	for _, action := range s {
		if action.Loss != LoseNothing {
			return true
		}
	}
	return false
}

// Parse reads what String has written.
func Parse(text string) (Schedule, error) {
	var schedule Schedule
	for _, letter := range []byte(text) {
		loss := strings.IndexByte(marks, letter)
		switch {
		case 'a' <= letter && letter <= 'z':
			schedule = append(schedule, Action{Who: int(letter - 'a')})
		case loss > 0 && len(schedule) > 0:
			schedule[len(schedule)-1].Loss = Loss(loss)
		default:
			return nil, fmt.Errorf("%w: %q", ErrSchedule, text)
		}
	}
	return schedule, nil
}

// ErrSchedule is the error of a schedule that cannot be read, or that does not fit what
// the participants do.
var ErrSchedule = errors.New("interleave: invalid schedule")

// Choose picks one of the actions that are possible. played are the ones before.
type Choose func(played Schedule, possible []Action) (Action, error)

// Follow picks the schedule's actions, and behind its end the first one that is possible
// without a loss.
func (s Schedule) Follow(played Schedule, possible []Action) (Action, error) {
	if len(played) >= len(s) {
		return possible[0], nil
	}
	next := s[len(played)]
	for _, action := range possible {
		if action.Who == next.Who {
			return next, nil
		}
	}
	return Action{}, fmt.Errorf("%w: %s cannot go on after %q", ErrSchedule, next, played)
}
