// Package metrics exports metrics of a worker and its reaper for Prometheus.
//
// Counters and histograms are of this process, since its start: sum them over
// all workers. Gauges of the queue and the gates are read from the database at each
// scrape, so every worker exports the same: take the maximum.
package metrics
