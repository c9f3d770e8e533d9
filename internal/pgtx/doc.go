// Package pgtx begins, commits and rolls back transactions, and tells PostgreSQL's
// errors apart.
//
// A transaction begins on a pool, on a connection, or in a transaction of the
// caller's, where it is a savepoint. On a pool or a connection, BEGIN and COMMIT are
// sent with other statements, so that neither needs a round trip of its own.
package pgtx
