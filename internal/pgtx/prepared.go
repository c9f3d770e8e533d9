package pgtx

import "github.com/jackc/pgx/v5"

// preparedKey is the key in a connection's own data.
const preparedKey = "leasereaper: prepared statements"

// prepared are the statements that a connection has prepared, as far as it is known. pgx
// drops those of a batch that fails.
type prepared struct {
	mode pgx.QueryExecMode
	sql  map[string]bool
}

// known are the statements that the transaction's connection has prepared.
func (t *Tx) known() *prepared {
	conn := t.conn
	if conn == nil {
		conn = t.Conn()
	}
	if conn == nil { // a transaction of another make
		return &prepared{mode: pgx.QueryExecModeDescribeExec, sql: map[string]bool{}}
	}
	data := conn.PgConn().CustomData()
	known, ok := data[preparedKey].(*prepared)
	if !ok {
		known = &prepared{mode: modeOf(conn.Config()), sql: map[string]bool{}}
		data[preparedKey] = known
	}
	return known
}

// leastCache is how many statements pgx must keep for a connection, so that those of a
// reaper are not dropped for others. Unless it is set, pgx keeps 512.
const leastCache = 100

// modeOf is how a connection prepares statements. With a small cache it is as if each
// were prepared anew.
func modeOf(cfg *pgx.ConnConfig) pgx.QueryExecMode {
	mode := cfg.DefaultQueryExecMode
	if mode == pgx.QueryExecModeCacheStatement && cfg.StatementCacheCapacity < leastCache ||
		mode == pgx.QueryExecModeCacheDescribe && cfg.DescriptionCacheCapacity < leastCache {
		return pgx.QueryExecModeDescribeExec
	}
	return mode
}

// lack reports whether pgx prepares one of the statements before it sends them.
func (p *prepared) lack(queries []*pgx.QueuedQuery) bool {
	switch p.mode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return false
	case pgx.QueryExecModeDescribeExec:
		return true
	}
	for _, query := range queries {
		if !p.sql[query.SQL] {
			return true
		}
	}
	return false
}

// keep notes that statements were prepared, or dropped after an error.
func (p *prepared) keep(queries []*pgx.QueuedQuery, prepared bool) {
	for _, query := range queries {
		p.sql[query.SQL] = prepared
	}
}
