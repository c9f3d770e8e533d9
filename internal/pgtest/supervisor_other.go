//go:build !unix

package pgtest

// supervisor exists only on Unix.
type supervisor struct{ folder string }

func supervise(string, account) (*supervisor, error) { return nil, errPlatform }

func (*supervisor) init() error                  { return errPlatform }
func (*supervisor) configure(ServerConfig) error { return errPlatform }
func (*supervisor) start() (*run, error)         { return nil, errPlatform }
func (*supervisor) release()                     {}
func (*supervisor) end() error                   { return nil }
func (*supervisor) log() string                  { return "" }

// run is one run of a server.
type run struct{ ended chan struct{} }

func (*run) hasEnded() bool  { return true }
func (*run) kill() error     { return errPlatform }
func (*run) shutDown() error { return errPlatform }
func (*run) wait() error     { return errPlatform }
func (*run) forget()         {}
