package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// fetchTimeout bounds one download, so that there is time for another origin.
const fetchTimeout = 2 * time.Minute

var errNoCache = errors.New("no cache folder: neither XDG_CACHE_HOME nor HOME is set")

// origin is a source of PostgreSQL's programs on the network.
type origin struct {
	// name is the name of the folder in the cache.
	name string
	// bin is the folder of initdb and postgres, below the folder in the cache.
	bin string
	// fetch downloads and unpacks into a folder. work is a folder for temporary files.
	fetch func(ctx context.Context, work string, into *os.Root) error
}

// download returns the folder of the programs of an origin that is in the cache, else of
// the first origin that can be fetched. If there is none, it returns each origin's error.
func (e Environment) download(ctx context.Context, as account) (string, [2]error) {
	var reasons [2]error
	origins := [2]origin{e.npm(), e.maven()}
	for _, from := range origins {
		bin := filepath.Join(e.Cache, from.name, from.bin)
		if _, err := inspect(ctx, bin, as); err == nil {
			return bin, reasons
		}
	}
	for i, from := range origins {
		if reasons[i] = e.keep(ctx, from); reasons[i] != nil {
			continue
		}
		bin := filepath.Join(e.Cache, from.name, from.bin)
		if _, reasons[i] = inspect(ctx, bin, as); reasons[i] == nil {
			return bin, reasons
		}
	}
	return "", reasons
}

// keep fetches an origin into the cache unless the cache has it. It fetches into a
// temporary folder and renames that, so that a folder with the origin's name is complete.
func (e Environment) keep(ctx context.Context, from origin) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e.Cache == "" {
		return errNoCache
	}
	kept := filepath.Join(e.Cache, from.name)
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
	if err := fetchInto(ctx, from, work, unpacked); err != nil {
		return err
	}
	if err := os.Rename(unpacked, kept); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// fetchInto makes a folder, and fetches into it.
func fetchInto(ctx context.Context, from origin, work, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	return errors.Join(from.fetch(ctx, work, root), root.Close())
}
