// Package demo shows the service at work: three processes on a database of their
// own. One of them is killed now and then, and triggers in the database record what
// happens to each job. At the end it checks that each job ended once, that the jobs
// of the killed processes came back, and that the metrics agree with the tables.
package demo
