package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// mapping is the database that a command works on: what its tables are called, which
// leases are stale, and how jobs are reset.
type mapping struct {
	file, name string // empty: it is from flags
	production bool   // a change takes the name
	citus      bool   // it is a coordinator, and the queue's shards are members of the fleet
	colour     string

	reaper   reaper.Config
	settings gates.Table
	letters  deadletter.Store
	maxStale int // of an apply; a drain has none

	policy     *policyOf // of the backoff, for the watch's estimates; nil: the default
	kindPolicy map[string]policyOf
}

// tables are the tables that a reaper and the operators need.
func (m *mapping) tables() []pgx.Identifier {
	names := []pgx.Identifier{m.letters.Queue.Table, m.settings.Name}
	if !m.letters.InPlace {
		names = append(names, m.letters.Table.Name)
	}
	return names
}

// check reports every fault of the mapping that can be known without a database.
func (m *mapping) check() error {
	_, err := reaper.New(nowhere{}, m.reaper)
	if err == nil {
		_, err = m.render("")
	}
	if m.maxStale < 0 {
		err = errors.Join(err, fmt.Errorf("max_stale %d is negative", m.maxStale))
	}
	return err
}

// nowhere is a database for a Reaper that is only checked.
type nowhere struct{}

func (nowhere) Begin(context.Context) (pgx.Tx, error) { return nil, errors.ErrUnsupported }

// load reads the mapping file, if there is one, and what the flags say about it.
func (t *tool) load() error {
	if t.loaded {
		return nil
	}
	path, err := findFile(t.config)
	if err != nil {
		return err
	}
	if t.embedded || path == "" {
		return t.loadFlags()
	}
	f, err := readMappingFile(path)
	if err != nil {
		return err
	}
	if t.flags.any() {
		return misused("%s has the mapping; --queue and the like go with --config %s", path, noFile)
	}
	name, err := f.choose(t.database)
	if err != nil {
		return err
	}
	return t.use(f, name)
}

// use takes a database of a file.
func (t *tool) use(f *file, name string) (err error) {
	e := f.Databases[name]
	t.queue, t.loaded = e.mapping(f.path, name), true
	if t.url == "" {
		t.url, t.urlName, err = e.connection()
	}
	return err
}

// loadFlags takes the mapping of the flags.
func (t *tool) loadFlags() (err error) {
	if t.database != "" {
		return misused("--database %s is one of a mapping file, and there is none; for an address: --database-url",
			t.database)
	}
	t.queue, err = t.flags.mapping()
	t.loaded = err == nil
	return err
}
