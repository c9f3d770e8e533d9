package pgtest_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// An incomplete or changed download must not be cached.
func TestFindDropsADownloadThatIsNotWhole(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ archive, sum, want string }{
		"the checksum differs":      {jar(t), strings.Repeat("0", 64), "checksum"},
		"it is no archive":          {"no archive", sumOf("no archive"), "zip"},
		"there is no archive in it": {zipped(t, "README", nil), sumOf(zipped(t, "README", nil)), "no .txz"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			repository := serve(t, test.archive, test.sum, new(atomic.Int32))
			cache := openFolder(t)
			_, err := pgtest.Environment{Cache: cache, Repository: repository}.Find(t.Context())
			var none *pgtest.SourceError
			require.ErrorAs(t, err, &none)
			require.ErrorContains(t, none.Download, test.want)
			requireEntries(t, cache, 0)
		})
	}
}

// A search must stop its downloads when its context ends.
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

// Another version of the library may rename the field, and then no download would work.
func TestTheLibrarysRepositoryIsRead(t *testing.T) {
	t.Parallel()

	address, err := url.Parse(pgtest.DefaultRepository())
	require.NoError(t, err)
	require.Equal(t, "https", address.Scheme)
	require.NotEmpty(t, address.Host)
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

// jar returns an archive like those of the repository, with an initdb and a postgres that
// only print a version.
func jar(t *testing.T) string {
	t.Helper()
	binaries, err := os.ReadFile(filepath.Join("testdata", "binaries.txz"))
	require.NoError(t, err)
	return zipped(t, "postgres.txz", binaries)
}

// zipped returns a zip archive of one file.
func zipped(t *testing.T, name string, content []byte) string {
	t.Helper()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	file, err := writer.Create(name)
	require.NoError(t, err)
	_, err = file.Write(content)
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
