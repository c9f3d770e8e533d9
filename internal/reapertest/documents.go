package reapertest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Page returns a document of the project, by its path from the root.
func Page(t *testing.T, path string) []byte {
	t.Helper()
	root, err := os.Getwd() // a test runs in its package's folder
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		require.NotEqual(t, root, filepath.Dir(root), "no go.mod")
		root = filepath.Dir(root)
	}
	page, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return page
}

// Fenced returns a page's code blocks in a language.
func Fenced(t *testing.T, page, language string) []string {
	t.Helper()
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(Page(t, page), -1) {
		blocks = append(blocks, string(match[1]))
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// GrantsOf returns the grants for the reaper's role in docs/reference.md.
func GrantsOf(t *testing.T) []string {
	t.Helper()
	for _, block := range Fenced(t, "docs/reference.md", "sql") {
		if strings.HasPrefix(block, "grant") {
			return strings.Split(strings.TrimSpace(block), "\n")
		}
	}
	return nil
}

// LeastPrivileged returns a queue, and a pool whose role has only the grants of
// docs/reference.md.
func LeastPrivileged(t *testing.T) (pool, asRole *pgxpool.Pool, name string) {
	t.Helper()
	pool = OpenQueue(t)
	name = One[string](t, pool, `select 'login_' || md5(current_database())`)
	Exec(t, pool, `create role `+name+` login`)
	t.Cleanup(func() { DropRole(t, pool, name) })
	for _, grant := range GrantsOf(t) {
		Exec(t, pool, strings.ReplaceAll(grant, "leasereaper", name))
	}
	asRole = pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = name })
	return pool, asRole, name
}
