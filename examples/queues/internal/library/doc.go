// Package library is what the tests of the queues share: it starts and kills a library's
// own programs, and has short functions for a database and a reaper.
package library
