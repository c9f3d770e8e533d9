package pgtest_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A newcomer without PostgreSQL runs the tests. The second run is offline.
func TestFindDownloadsOnceWhenNothingIsInstalled(t *testing.T) {
	t.Parallel()

	archive := jar(t)
	var requests atomic.Int32
	repository := serve(t, archive, sumOf(archive), &requests)
	cache := openFolder(t)

	for range 2 {
		source, err := pgtest.Environment{Cache: cache, Repository: repository}.Find(t.Context())
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(source.Bin, "postgres"))
		require.EqualValues(t, 2, requests.Load(), "the archive and its checksum, once")
	}
	requireEntries(t, cache, 1)
}

// A download that was cut off or tampered with must not become the cache.
func TestFindDropsADownloadThatIsNotWhole(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ archive, sum string }{
		"the checksum differs": {archive: jar(t), sum: strings.Repeat("0", 64)},
		"it is no archive":     {archive: "no archive", sum: sumOf("no archive")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			repository := serve(t, test.archive, test.sum, new(atomic.Int32))
			cache := openFolder(t)
			_, err := pgtest.Environment{Cache: cache, Repository: repository}.Find(t.Context())
			var none *pgtest.SourceError
			require.ErrorAs(t, err, &none)
			require.Error(t, none.Download)
			requireEntries(t, cache, 0)
		})
	}
}

// A search that was given up must not go on to download behind the test's back.
func TestFindDownloadsNothingWhenItIsGivenUp(t *testing.T) {
	t.Parallel()

	var requests atomic.Int32
	archive, cache := jar(t), openFolder(t)
	environment := pgtest.Environment{Cache: cache, Repository: serve(t, archive, sumOf(archive), &requests)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := environment.Find(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, requests.Load())
	requireEntries(t, cache, 0)
}

// serve returns the address of a repository that has one archive.
func serve(t *testing.T, archive, sum string, requests *atomic.Int32) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		requests.Add(1)
		if strings.HasSuffix(request.URL.Path, ".sha256") {
			_, _ = response.Write([]byte(sum))
			return
		}
		_, _ = response.Write([]byte(archive))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// jar returns an archive like those of the repository, with an initdb and a
// postgres that only tell a version.
func jar(t *testing.T) string {
	t.Helper()
	binaries, err := os.ReadFile(filepath.Join("testdata", "binaries.txz"))
	require.NoError(t, err)
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	file, err := writer.Create("postgres.txz")
	require.NoError(t, err)
	_, err = file.Write(binaries)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return archive.String()
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func requireEntries(t *testing.T, folder string, want int) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, want)
}
