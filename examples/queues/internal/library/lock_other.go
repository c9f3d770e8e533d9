//go:build !unix

package library

// lock does nothing: two processes may both have npm fetch the packages.
func lock(string) (unlock func(), err error) { return func() {}, nil }
