package gates_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// withDatabase runs an example on a new database with the reference tables.
func withDatabase(example func(ctx context.Context, db gates.DB) error) {
	ctx := context.Background()
	database, err := pgtest.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer database.Close() //nolint:errcheck // an example ends here
	if err := example(ctx, database.Pool); err != nil {
		fmt.Println(err)
	}
}

func ExampleValues_Window() {
	until, err := gates.Values{gates.WindowUntil: "2026-01-02 03:04:05+01"}.Window()
	fmt.Println(until.Time, err)
	_, err = gates.Values{gates.WindowUntil: "2026-01-02 03:04:05"}.Window()
	fmt.Println(err)
	// Output:
	// 2026-01-02 02:04:05 +0000 UTC <nil>
	// gates: queue.lease.reaper_window_until: "2026-01-02 03:04:05" is not a time with its offset, such as 2026-01-02T03:04:05Z, nor infinity
}

func ExampleValues_Check() {
	for _, value := range []string{"yes", "perhaps"} {
		fmt.Println(gates.Values{gates.ReaperEnabled: value}.Check(gates.ReaperEnabled))
	}
	// Output:
	// <nil>
	// gates: queue.lease.reaper_enabled: "perhaps" is not a boolean
}

// The database's clock decides whether a window has ended.
func ExampleValues_Gate() {
	withDatabase(func(ctx context.Context, db gates.DB) error {
		tx, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx) //nolint:errcheck // it only reads
		var now time.Time
		if err := tx.QueryRow(ctx, "select now()").Scan(&now); err != nil {
			return err
		}
		open, err := gates.Values{gates.WindowUntil: "2026-01-02T03:04:05Z"}.Gate(gates.WindowUntil, now)
		fmt.Println(open)
		return err
	})
	// Output:
	// false
}

// An operator allows applies for an hour and need not remember to stop them.
func ExampleTable_OpenWindow() {
	withDatabase(func(ctx context.Context, db gates.DB) error {
		until, err := gates.Table{}.OpenWindow(ctx, db, "ops@example.com", time.Hour)
		if errors.Is(err, gates.ErrDuration) {
			return err // nothing has changed
		}
		if err != nil {
			return err
		}
		fmt.Println(time.Until(until) > 0, until.Location())
		return nil
	})
	// Output:
	// true UTC
}

// Once it has returned, no apply commits, on any machine.
func ExampleTable_CloseWindow() {
	withDatabase(func(ctx context.Context, db gates.DB) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // it waits for applies under way
		defer cancel()
		err := gates.Table{}.CloseWindow(ctx, db, "ops@example.com")
		fmt.Println(err)
		return nil
	})
	// Output:
	// <nil>
}

func ExampleTable_Set() {
	withDatabase(func(ctx context.Context, db gates.DB) error {
		settings := gates.Table{}
		err := settings.Set(ctx, db, "ops@example.com", gates.ReaperEnabled, "perhaps")
		var bad *gates.ValueError
		if errors.As(err, &bad) {
			fmt.Printf("not stored: %q\n", bad.Value)
		}
		err = settings.Set(ctx, db, "ops@example.com", "queue.lease.reaper_enable", "true")
		fmt.Println(errors.Is(err, gates.ErrKey))
		return settings.Set(ctx, db, "ops@example.com", gates.ReaperEnabled, "true")
	})
	// Output:
	// not stored: "perhaps"
	// true
}

// Without an end the third gate stays open until it is closed.
func ExampleTable_Unset() {
	withDatabase(func(ctx context.Context, db gates.DB) error {
		return gates.Table{}.Unset(ctx, db, "ops@example.com", gates.WindowUntil)
	})
	// Output:
}

// Settings of the database itself, as in: alter database shop set
// queue.lease.reaper_enabled = 'true'.
func ExampleCurrentSetting() {
	var source gates.Source = gates.CurrentSetting{}
	fmt.Printf("%T\n", source)
	// Output:
	// gates.CurrentSetting
}

func ExampleKeys() {
	for _, key := range gates.Keys() {
		fmt.Println(key)
	}
	// Output:
	// queue.job_substrate.enabled
	// queue.lease.reaper_enabled
	// queue.lease.reaper_dry_run_only
	// queue.lease.reaper_window_until
	// queue.retry.backoff_base_sec
}
