// Package fleet runs the reapers of many databases as one: it starts a loop for each
// member, stops the loops of members that went, and asks all members at once.
//
// A queue that outgrows one server is often split into many, a database for each tenant or
// shard, and the list of them changes. [Config.Members] returns the current list, and
// [Fleet.Run] asks for it again every Interval. It runs [reaper.Reaper.Run] for each member
// in a goroutine of its own, so nothing that happens to one member reaches another. A loop
// that panics, and a member whose configuration is invalid, are tried again after growing
// waits. [Fleet.DryRun], [Fleet.Drain] and [Fleet.Verify] call the method of that name for
// each member and return an [Outcome] for each. [Fleet.CloseGates] stops them all.
//
//	f, err := fleet.New(fleet.Config{
//		Members: func(ctx context.Context) ([]fleet.Member, error) {
//			return tenants.Members(ctx) // a name and a pool for each
//		},
//		Released: func(m fleet.Member) { tenants.Close(m.Name) },
//		Logger:   slog.Default(),
//	})
//	if err != nil {
//		return err
//	}
//	return f.Run(ctx, "billing-reaper", reaper.RunConfig{})
//
// # Guarantees
//
// A member that fails, hangs or panics stops no other. A name never has two loops at once.
// [Config.Released] is called once for each member, after its loop has ended. When the
// context of a Run ends, the Run waits for all loops, so no goroutine outlives it. Memory and
// the queries of idle members grow linearly: a goroutine and one poll an Interval for each.
// Members that are new at the same time start one after the other, spread over an Interval.
//
// What a reaper promises holds for each member by itself. There is no transaction over
// several members.
//
// # Concurrency
//
// A Fleet is safe for concurrent use. Run it once at a time, since each Run calls Released
// for its members. Members, Released and the hooks in a member's Config may be called
// concurrently.
package fleet
