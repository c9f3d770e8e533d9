package citus_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

func runShards(ctx context.Context, coordinator *pgxpool.Pool) error {
	shards, err := citus.New(coordinator, citus.Config{})
	if err != nil {
		return err
	}
	defer shards.Close()
	f, err := fleet.New(fleet.Config{Members: shards.Members, Released: shards.Released, Logger: slog.Default()})
	if err != nil {
		return err
	}
	return f.Run(ctx, "billing-reaper", reaper.RunConfig{})
}

// A reader copies the code of docs/scaling.md, and it does not compile.
func TestTheDocumentsGoIsCompiled(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	for _, block := range reapertest.Fenced(t, "docs/scaling.md", "go") {
		require.Contains(t, string(source), block)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reapertest.ErrEnd)
	require.ErrorIs(t, runShards(ctx, newNode(t, 0)), reapertest.ErrEnd)
}

func ExampleNew() {
	coordinator, err := pgxpool.New(context.Background(), "postgres://coordinator/app")
	if err != nil {
		log.Fatal(err)
	}
	defer coordinator.Close()
	shards, err := citus.New(coordinator, citus.Config{
		Reaper: reaper.Config{MaxStale: 1000}, // of each shard
		Node: func(config *pgxpool.Config) {
			config.MaxConns = 8 // for the loops of all shards on the node
			config.ConnConfig.Host += ".internal.example.com"
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer shards.Close()
	_, err = fleet.New(fleet.Config{Members: shards.Members, Released: shards.Released})
	fmt.Println(err)
	// Output:
	// <nil>
}
