// Package oracle holds the reference for behaviour: the reaper as PL/pgSQL
// functions, row by row, over the reference tables. Tests compare the library
// with it, and benchmarks measure against it.
package oracle

import _ "embed"

// Schema is the DDL of the reference tables, to be executed once.
//
//go:embed schema.sql
var Schema string

// Functions is the DDL of the functions: fn_config, fn_job_move_to_dead_letter,
// fn_job_reap_stale_leases_dry_run and fn_job_reap_stale_leases_apply.
//
//go:embed functions.sql
var Functions string
