package reaper

import (
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
)

// builtinSource returns a source of the library's own, whose reading can travel
// with other statements. Another type may embed one of them and have its Queue, but
// a Read of its own.
func builtinSource(source gates.Source) gates.Pipeliner {
	switch source := source.(type) {
	case gates.Table:
		return source
	case gates.CurrentSetting:
		return source
	case gates.Static:
		return source
	}
	return nil
}

// builtinMover returns what the library's own movers write to: the name of a
// dead-letter table, or a function.
func builtinMover(mover deadletter.Mover) (letters pgx.Identifier, function deadletter.Pipeliner) {
	switch mover := mover.(type) {
	case deadletter.Table:
		return orName(mover.Name, "job_dead_letter"), nil
	case deadletter.Function:
		return nil, mover
	}
	return nil, nil
}
