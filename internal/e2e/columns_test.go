package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutColumns is a query of a table of the user's that has no columns.
var withoutColumns = regexp.MustCompile(`select\s+from \{`)

// PostgreSQL takes a subquery without columns. Citus answers 42601, and every apply with a
// MaxStale fails.
func TestNoStatementHasAQueryWithoutColumns(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"reaper", "gates", "deadletter", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotRegexp(t, withoutColumns, string(source), path)
			return nil
		})
		require.NoError(t, err)
	}
}
