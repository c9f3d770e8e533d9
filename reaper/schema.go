package reaper

import _ "embed"

// Schema is the DDL of the reference tables: job_queue, job_dead_letter and
// queue_config, with their indexes. It may be executed again on a database that
// has them already, and then changes nothing. The file schema.sql holds the
// same text for psql.
//
//go:embed schema.sql
var Schema string
