package stmt

// Placeholders in braces are names, and states as quoted literals; New puts them
// in once. A state is a literal because a generic plan, which does not know its
// parameters, could not use an index that is partial on the state.
//
// Where an array of keys is a parameter, the empty subquery next to it gives it
// the type of the key column, whatever that is.

// condStale is the condition of a stale lease, by the clock of the database at the
// start of the transaction. A lease without an end is not stale: the comparison yields
// NULL. An explicit IS NOT NULL is left out because the planner would multiply both
// selectivities and expect too few rows. Every statement that uses it has the scope
// as its $1: the grace in microseconds as a bigint, or all of it as a jsonb. With
// another grace for some kinds the index is read up to the shortest.
const condStale = `{leased_and}{key} < {key(}now() - {grace}{)key}{only}{ripe}`

// condHasKey is true of jobs that have an id. A job without one cannot be named in a
// result.
const condHasKey = `q.{job_id} is not null`

// condStaleByKey is condStale for rows that are found by their keys or addresses. The coalesce
// keeps the planner from the index of the leases: with statistics that know of no
// lease it would read all of them there.
const condStaleByKey = `coalesce(` + condStale + `, false)`

// condAtEdge is true of a counter that its column's type cannot count further. The
// size of the value tells a smallint, an integer and a bigint; hardly a row is asked
// for it.
const condAtEdge = `(q.{counter} >= 32767 and q.{counter} >= case pg_column_size(q.{counter})
    when 2 then 32767 when 4 then 2147483647 else 9223372036854775807 end)`

// condExhausted is true of a job that is moved instead of being reset: one more failed
// attempt reaches the maximum, or cannot be counted. NULL attempts count as 0, and a
// NULL maximum is never reached.
const condExhausted = `(
    coalesce(q.{counter}, 0)::bigint
      >= greatest({limit}, -9223372036854775807) - {step}
    or coalesce({at_edge}, false))`
