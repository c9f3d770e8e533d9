package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// templateLock is an advisory lock. It keeps two test processes that share a server from
// making a template at the same time.
const templateLock = 7_239_514_860_143

// template returns the name of a template database with the schema, and makes the database
// if it does not exist. It accepts no connections. Its name has the hash of the schema.
func (h *host) template(ctx context.Context, schema string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if name, ok := h.templates[schema]; ok {
		return name, nil
	}
	name := fmt.Sprintf("pgtest_template_%x", sha256.Sum256([]byte(schema)))[:40]
	err := h.lock(ctx, func(conn *pgx.Conn) error { return makeTemplate(ctx, conn, name, schema) })
	if err != nil {
		return "", fmt.Errorf("make template %q: %w", name, err)
	}
	h.templates[schema] = name
	return name, nil
}

// lock runs do on a connection that holds the advisory lock, and closes it.
func (h *host) lock(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, h.admin.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, int64(templateLock)); err != nil {
		return err
	}
	return do(conn)
}

// makeTemplate makes a template unless it exists. Only a complete one is marked as a
// template; a database of that name without the mark is from a killed process.
func makeTemplate(ctx context.Context, conn *pgx.Conn, name, schema string) error {
	var there bool
	err := conn.QueryRow(ctx, sqlHasTemplate, name).Scan(&there)
	if err != nil || there {
		return err
	}
	quoted := pgx.Identifier{name}.Sanitize()
	remake := []string{
		`drop database if exists ` + quoted + ` with (force)`,
		`create database ` + quoted + ` template template0`,
	}
	if err := execute(ctx, conn, remake...); err != nil {
		return err
	}
	if err := apply(ctx, conn.Config(), name, schema); err != nil {
		return err
	}
	return execute(ctx, conn, `alter database `+quoted+` with is_template true allow_connections false`)
}

// apply runs the schema in a database and closes the connection. An open connection would
// prevent clones of the database.
func apply(ctx context.Context, config *pgx.ConnConfig, database, schema string) error {
	config = config.Copy()
	config.Database = database
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	// The simple protocol allows several statements in one string.
	_, err = conn.PgConn().Exec(ctx, schema).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// execute runs statements one by one, each in its own transaction.
func execute(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

const sqlHasTemplate = `-- pgtest.hasTemplate
select exists (
    select
    from pg_database
    where datname = $1
    and datistemplate)`
