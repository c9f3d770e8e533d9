// Package demo shows the service at work: three processes on a database of their
// own. One of the first two is killed now and then; the third serves the console.
// Triggers in the database record what happens to each job. At the end it checks that
// each job ended once, that the jobs of the killed processes came back, and that the
// metrics agree with the tables.
package demo
