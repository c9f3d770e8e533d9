// Package gatesql reads settings for the sources that package gates brings. Each of
// them is one statement, which can travel in a batch with others.
package gatesql

import "github.com/jackc/pgx/v5"

// Source queues its statement, if it needs one, to read what is set of keys. The
// answer is there once the batch was answered. With lock it locks what it reads, if
// it can; without, what was read may only close a gate.
type Source interface {
	Queue(b *pgx.Batch, keys []string, lock bool) *Answer
}

// Answer is what a source has read.
type Answer struct {
	Values  map[string]string // what is set
	Unclear []Unclear         // not among the values
}

// Unclear is a setting with two values. What the values mean decides between them,
// which package gates knows: the source's Read there returns one or an error.
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

// Fixed are answers that need no statement.
type Fixed map[string]string

// Queue queues nothing.
func (f Fixed) Queue(*pgx.Batch, []string, bool) *Answer { return &Answer{Values: f} }
