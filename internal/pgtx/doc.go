// Package pgtx begins, commits and rolls back transactions, and tells PostgreSQL's
// errors apart.
//
// A transaction begins on whatever the caller has: a pool, a connection, or a
// transaction of the caller's, where it is a savepoint. On a pool or a connection,
// BEGIN and COMMIT travel with other statements, so that a transaction needs no
// round trip for either.
package pgtx
