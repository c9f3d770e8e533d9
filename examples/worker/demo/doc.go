// Package demo shows the service at work: three processes on a database of their
// own, of which one is killed now and then, while a witness in the database
// writes down what becomes of each job. At the end it holds the processes to
// account: each job ended once, those of the killed came back, and the metrics
// say what the tables say.
package demo
