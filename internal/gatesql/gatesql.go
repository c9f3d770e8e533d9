// Package gatesql reads settings for the sources of package gates. Each source is at most
// one statement, which can be sent in a batch with others.
package gatesql

import "github.com/jackc/pgx/v5"

// Source queues the statement, if any, that reads the values of those keys that are set.
// The answer is complete once the results of b are read. With lock, a source that can lock
// settings does so. Without lock, the answer may only be used to refuse.
type Source interface {
	Queue(b *pgx.Batch, keys []string, lock bool) *Answer
}

// Answer has the settings that a source has read.
type Answer struct {
	Values  map[string]string // the settings that are set
	Unclear []Unclear         // settings with two values
	Read    bool              // the answer is there
}

// Unclear is a setting with two values. The source's Read in package gates chooses one or
// returns an error.
type Unclear struct {
	Key           string
	First, Second *string // nil: unset
}

// add adds a value, unless it is unset.
func (a *Answer) add(key string, value *string) {
	if value != nil {
		a.Values[key] = *value
	}
}

// Fixed is a source with fixed values, without a statement.
type Fixed map[string]string

// Queue queues nothing.
func (f Fixed) Queue(*pgx.Batch, []string, bool) *Answer { return &Answer{Values: f, Read: true} }
