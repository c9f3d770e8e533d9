package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// fetchTimeout bounds one download, so that one that hangs leaves time for the next.
const fetchTimeout = 2 * time.Minute

var errNoCache = errors.New("there is no folder to keep it in, neither XDG_CACHE_HOME nor HOME is set")

// origin is a place on the network that has PostgreSQL's programs.
type origin struct {
	// name is that of the folder in the cache.
	name string
	// bin is the folder of initdb and postgres in what is unpacked.
	bin string
	// fetch downloads and unpacks into a folder; work is for what it needs meanwhile.
	fetch func(ctx context.Context, work string, into *os.Root) error
}

// download returns the programs' folder of an origin that the cache has, else of
// the first that it can be fetched from. Otherwise it returns the reason of each.
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

// keep fetches what an origin has unless the cache has it. It does so in a folder
// of its own and renames that: whatever has its name in the cache is whole.
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
