// Package metrics tells Prometheus what a worker and its reaper do.
//
// Counters and histograms are of this process, since its start: sum them over
// all. Gauges about the queue and the gates are asked of the database at each
// scrape, so every worker says the same: take the maximum.
package metrics
