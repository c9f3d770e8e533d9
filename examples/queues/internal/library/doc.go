// Package library is what the tests of the queues have in common: a library's own
// programs, which they start and kill, and short ways to a database.
package library
