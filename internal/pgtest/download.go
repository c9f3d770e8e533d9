package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloadVersion is what embedded-postgres offers as its newest.
const downloadVersion = embeddedpostgres.V18

// download returns the folder of a downloaded PostgreSQL, which it fetches only
// when the cache has none. When ctx ends first, the download goes on unheard.
func (e Environment) download(ctx context.Context, as account) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if e.Cache == "" {
		return "", errors.New("there is no folder to keep it in, neither XDG_CACHE_HOME nor HOME is set")
	}
	done := make(chan error, 1)
	kept := filepath.Join(e.Cache, fmt.Sprintf("%s-%s-%s", downloadVersion, runtime.GOOS, runtime.GOARCH))
	go func() { done <- e.keep(kept) }()
	select {
	case err := <-done:
		if err != nil {
			return "", err
		}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	bin := filepath.Join(kept, "bin")
	_, err := inspect(ctx, bin, as)
	return bin, err
}

// keep downloads into a folder of its own and renames that, so that kept is
// whole or not there, whoever else is at it.
func (e Environment) keep(kept string) error {
	if _, err := os.Stat(kept); err == nil {
		return nil
	}
	if err := os.MkdirAll(e.Cache, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(e.Cache, "download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	unpacked := filepath.Join(work, "unpacked")
	if err := e.unpack(work, unpacked); err != nil {
		return err
	}
	if err := os.Rename(unpacked, kept); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// unpack has embedded-postgres download and unpack, and no more than that. The
// library has no such call; but it clears its data folder next, which a name
// that ends in a dot makes fail, and then it has run nothing yet.
func (e Environment) unpack(work, unpacked string) error {
	config := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		Port(0).
		Logger(nil).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, "runtime")).
		BinariesPath(unpacked).
		DataPath(work + "/.")
	if e.Repository != "" {
		config = config.BinaryRepositoryURL(e.Repository)
	}
	library := embeddedpostgres.NewDatabase(config)
	stopped := library.Start()
	removeOpenLogs()
	runtime.KeepAlive(library)
	if _, err := os.Stat(filepath.Join(unpacked, "bin", "postgres")); err != nil {
		return stopped
	}
	return nil
}
