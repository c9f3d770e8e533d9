package pgtx

import "github.com/jackc/pgx/v5"

// preparedKey is the key of the prepared statements in a connection's custom data.
const preparedKey = "leasereaper: prepared statements"

// prepared has the statements that a connection is known to have prepared. pgx drops
// those of a batch that fails.
type prepared struct {
	mode pgx.QueryExecMode
	sql  map[string]bool
}

// known returns the statements that the transaction's connection has prepared.
func (t *Tx) known() *prepared {
	conn := t.conn
	if conn == nil {
		conn = t.Conn()
	}
	if conn == nil { // not one of pgx's own transactions
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

// leastCache is the smallest statement cache in which a reaper's statements stay, besides
// those of others. pgx's default is 512.
const leastCache = 100

// modeOf returns how a connection prepares statements. A small cache counts as none: each
// statement is prepared again.
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

// keep records that statements were prepared, or dropped after an error.
func (p *prepared) keep(queries []*pgx.QueuedQuery, prepared bool) {
	for _, query := range queries {
		p.sql[query.SQL] = prepared
	}
}
