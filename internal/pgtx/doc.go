// Package pgtx begins, commits and rolls back transactions, and classifies PostgreSQL's
// errors.
//
// A transaction begins on a pool, on a connection, or in the caller's transaction, where
// it is a savepoint. On a pool or a connection, BEGIN and COMMIT are sent with other
// statements, so that neither needs a round trip of its own.
package pgtx
