// Package alertstest tests the alerting rules and the dashboard of the worker with
// Prometheus' own packages. It is a module of its own, so that the worker does not need
// them.
package alertstest
