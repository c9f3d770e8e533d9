// Package console shows a job queue and its lease reaper in a browser, and lets
// people act on it who may.
//
// [New] makes an [http.Handler] that is mounted under any prefix:
//
//	handler, err := console.New(console.Config{
//		Databases: []console.Database{{Name: "shop", Look: pool, Act: pool}},
//		Access:    access, // who asks, and what they may do
//	})
//	if err != nil {
//		return err
//	}
//	mux.Handle("/ops/leases/", http.StripPrefix("/ops/leases", handler))
//
// Each page is HTML, and JSON for a request that accepts application/json or whose
// path ends in .json. Pages and forms work without a script; with it, pages refresh
// by themselves.
//
// # Guarantees
//
// The handler checks the level of each request; it does not rely on a button that is not shown.
// Without an Access function nobody can change anything. What is read is read in
// read-only transactions. A plan is applied exactly as it was shown, less the jobs
// that were taken out of it. Payloads are hidden unless the configuration shows them.
// Requests that change something must be POST and come from the console's own pages.
// The pages load nothing from another host, set no cookie and are not stored.
//
// However many people look at a page, the database is asked for it once a second.
//
// # Concurrency
//
// The handler is safe for concurrent use, and starts no goroutine.
package console
