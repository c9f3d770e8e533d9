// Package stmt has the statements with which package reaper finds, claims, resets and
// moves jobs, over a queue that is mapped.
package stmt
