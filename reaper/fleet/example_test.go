package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// withTenants runs an example with a database for each of two tenants. Each has a stale lease.
func withTenants(example func(ctx context.Context, members []fleet.Member)) {
	ctx := context.Background()
	var members []fleet.Member
	for _, name := range []string{"north", "south"} {
		database, err := pgtest.Open(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer database.Close() //nolint:errcheck,gocritic // an example ends here, with both
		_, err = database.Pool.Exec(ctx, `insert into job_queue (job_kind, state, lease_until)
			values ('send_invoice', 'leased', now() - interval '90 seconds')`)
		if err != nil {
			log.Fatal(err)
		}
		members = append(members, fleet.Member{
			Name: name, DB: database.Pool,
			Config: reaper.Config{Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true}},
		})
	}
	example(ctx, members)
}

func ExampleFleet_Run() {
	withTenants(func(ctx context.Context, tenants []fleet.Member) {
		ctx, stop := context.WithCancel(ctx)
		passes := make(chan reaper.Pass, 100)
		f, err := fleet.New(fleet.Config{
			// A service reads its directory of tenants here.
			Members:  func(context.Context) ([]fleet.Member, error) { return tenants, nil },
			Released: func(m fleet.Member) { log.Print("its pool may be closed: ", m.Name) },
		})
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			for reset := 0; reset < 2; {
				pass := <-passes
				reset += pass.Result.ResetCount
			}
			stop() // a service would not
		}()
		err = f.Run(ctx, "billing-reaper", reaper.RunConfig{
			Interval: time.Second,     // the default is 30 seconds
			Settle:   time.Nanosecond, // this server has just started, and nobody is running jobs
			OnPass:   func(_ context.Context, pass reaper.Pass) { passes <- pass },
		})
		fmt.Println(err)
	})
	// Output:
	// context canceled
}

func ExampleFleet_DryRun() {
	withTenants(func(ctx context.Context, tenants []fleet.Member) {
		f, err := fleet.New(fleet.Config{
			Members: func(context.Context) ([]fleet.Member, error) { return tenants, nil },
		})
		if err != nil {
			log.Fatal(err)
		}
		outcomes, err := f.DryRun(ctx, 100)
		if err != nil {
			log.Fatal("nobody was asked: ", err)
		}
		for _, outcome := range outcomes {
			if outcome.Err != nil {
				log.Print(outcome.Member, ": ", outcome.Err)
				continue
			}
			fmt.Println(outcome.Member, outcome.Result.StaleLeaseCount)
		}
	})
	// Output:
	// north 1
	// south 1
}

// Everything must stop. What could not be closed is said by name.
func ExampleFleet_CloseGates() {
	withTenants(func(ctx context.Context, tenants []fleet.Member) {
		tenants[1].Config.Gates = nil // the table queue_config
		f, err := fleet.New(fleet.Config{
			Members: func(context.Context) ([]fleet.Member, error) { return tenants, nil },
		})
		if err != nil {
			log.Fatal(err)
		}
		_, err = f.CloseGates(ctx, "operator@example.com")
		var open *fleet.NotClosedError
		if errors.As(err, &open) {
			fmt.Println("still open:", open.Members)
		}
	})
	// Output:
	// still open: [north]
}
