// Package pgtest gives each test a PostgreSQL database of its own, with the
// reference schema in it, and drops it when the test has passed.
//
// The first test of a process finds a server. It takes the first of these:
//
//   - the server that PGTEST_DATABASE_URL names;
//   - one that it starts from the initdb and postgres in PGTEST_BIN;
//   - one that it starts from an installed PostgreSQL;
//   - one that it starts from a download, which is kept in the user's cache: the npm
//     package if npm is installed, else an archive of a Maven repository.
//
// A variable that is set and does not work is an error. The schema is applied once to
// a template database. Each test's database is a clone of it.
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//
//		pool := pgtest.New(t)
//		...
//	}
//
// A program without a testing.TB uses [Open]. A test that kills or restarts its
// server starts one of its own with [Start].
//
// # Guarantees
//
// A started server listens on a Unix-domain socket in a temporary folder, on no
// TCP port. When this process ends, also by SIGKILL, the server ends and its folder
// is removed: a shell, the server's parent, waits for the end of a pipe that this process
// holds open. Only a SIGKILL to that shell leaves the server and the folder.
//
// On the server of PGTEST_DATABASE_URL some databases stay: those of a killed process,
// those of failed tests, and one template for each schema. Their names begin with
// pgtest_.
//
// No error and no log contains the password of a connection string.
//
// # Concurrency
//
// Everything may be called concurrently, also by several processes that share a
// server. Their PGTEST_DATABASE_URL must then name the same database.
//
// # Platforms
//
// PostgreSQL 13 to 18. Servers are started only on Unix; other platforms need
// PGTEST_DATABASE_URL. PostgreSQL refuses to run as root: for root it runs as the user
// postgres, else nobody.
package pgtest
