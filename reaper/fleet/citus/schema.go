package citus

import _ "embed"

// Schema is the DDL of the reference tables for Citus: those of [reaper.Schema], with the
// queue and its dead letters distributed by job_id and co-located, and queue_config as a
// reference table. It is for the coordinator, and may be executed again. The file schema.sql
// holds the same text for psql.
//
//go:embed schema.sql
var Schema string

// GuardFunction is the DDL of the function leasereaper_guard, which each transaction of a
// member that may write calls first. The owner of the queue executes it on the coordinator,
// and Citus 11 or later makes it on every node. The reaper's role needs EXECUTE on it. The
// file guard.sql holds the same text for psql.
//
//go:embed guard.sql
var GuardFunction string
