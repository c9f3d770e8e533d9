//go:build !unix

package pgtest

// removeOpenLogs has nothing to remove where nothing is downloaded.
func removeOpenLogs() {}
