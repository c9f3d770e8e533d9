//go:build !unix

package library

// lock does nothing here: two processes may install the packages at the same time.
func lock(string) (unlock func(), err error) { return func() {}, nil }
