package pgtest_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Some machines can use only an npm registry and no Maven repository. The second run is
// offline.
func TestFindTakesTheNpmPackageOnceWhenNothingIsInstalled(t *testing.T) {
	t.Parallel()

	folder, cache := openFolder(t), openFolder(t)
	npm(t, folder, npmPackage(t), "echo called >>"+filepath.Join(folder, "calls"))
	for range 2 {
		environment := pgtest.Environment{Path: []string{"", folder}, Cache: cache, Repository: nowhere}
		source, err := environment.Find(t.Context())
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(source.Bin, "postgres"))
	}
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	require.Equal(t, "called\n", string(calls))
	requireEntries(t, cache, 1)
}

// After an error of npm, or with a broken package, the search must continue, and the
// package must not be cached.
func TestFindDropsAnNpmPackageThatIsNotWhole(t *testing.T) {
	t.Parallel()

	whole := npmPackage(t)
	tests := map[string]struct{ packed, script, want string }{
		"npm fails":                  {whole, "echo npm error code E404 >&2; exit 1", "E404"},
		"npm leaves no package":      {whole, "exit 0", "0 packages"},
		"it is no archive":           {"no archive", "", "gzip"},
		"it is cut off":              {whole[:len(whole)/2], "", "unexpected EOF"},
		"a file lies outside of it":  {pack(t, entry{name: "package/../../outside"}), "", "escapes"},
		"a list of links is no list": {pack(t, entry{name: "package/native/pg-symlinks.json", text: "{"}), "", "JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			folder, cache := openFolder(t), openFolder(t)
			npm(t, folder, test.packed, test.script)
			environment := pgtest.Environment{Path: []string{folder}, Cache: cache, Repository: nowhere}
			_, err := environment.Find(t.Context())
			var none *pgtest.SourceError
			require.ErrorAs(t, err, &none)
			require.ErrorContains(t, none.Npm, test.want)
			requireEntries(t, cache, 0)
		})
	}
}

// With one download in the cache, no other download must be tried.
func TestFindGoesOnToTheNextDownload(t *testing.T) {
	t.Parallel()

	working, broken := openFolder(t), openFolder(t)
	npm(t, working, npmPackage(t), "")
	npm(t, broken, "", "exit 1")
	archive := jar(t)
	var requests atomic.Int32
	repository, cache := serve(t, archive, sumOf(archive), &requests), openFolder(t)

	for _, path := range []string{broken, working} {
		environment := pgtest.Environment{Path: []string{path}, Cache: cache, Repository: repository}
		source, err := environment.Find(t.Context())
		require.NoError(t, err)
		require.NotContains(t, source.Bin, "npm")
		require.EqualValues(t, 2, requests.Load(), "the archive and its checksum, once")
	}
	requireEntries(t, cache, 1)
}

// npm makes a program npm that runs a script and then writes a package to its working
// folder.
func npm(t *testing.T, folder, packed, script string) {
	t.Helper()
	stored := filepath.Join(folder, "stored")
	require.NoError(t, os.WriteFile(stored, []byte(packed), 0o600))
	program(t, filepath.Join(folder, "npm"), script+"\ncp "+stored+" postgres.tgz")
}

// npmPackage is a package like the real ones: its postgres is a symbolic link that is only
// in the package's list.
func npmPackage(t *testing.T) string {
	t.Helper()
	const links = `[{"source":"native/bin/server","target":"native/bin/postgres"}]`
	return pack(t,
		entry{name: "package/native/bin/initdb", text: "#!/bin/sh\necho 'initdb (PostgreSQL) 18.4'\n"},
		entry{name: "package/native/bin/server", text: "#!/bin/sh\necho 'postgres (PostgreSQL) 18.4'\n"},
		entry{name: "package/native/pg-symlinks.json", text: links},
	)
}

// entry is a file of an archive.
type entry struct{ name, text string }

func pack(t *testing.T, entries ...entry) string {
	t.Helper()
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	writer := tar.NewWriter(compressor)
	for _, entry := range entries {
		header := &tar.Header{Name: entry.name, Mode: 0o755, Size: int64(len(entry.text))}
		require.NoError(t, writer.WriteHeader(header))
		_, err := strings.NewReader(entry.text).WriteTo(writer)
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	require.NoError(t, compressor.Close())
	return packed.String()
}
