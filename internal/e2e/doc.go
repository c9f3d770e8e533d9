// Package e2e has the tests of whole scenarios: a storm of workers, reapers and broken
// connections, standbys, PgBouncer, outages, migrations, and what the documents show.
package e2e
