package pgtest

import (
	"context"
	"sync"
	"time"
)

// findTimeout bounds the search for a server, with a download in it.
const findTimeout = 5 * time.Minute

// shared is the server of the process, found at the first need. What fails once
// is not tried again, for each test would wait for the same error.
type shared struct {
	mu   sync.Mutex
	host *host
	err  error
}

var process shared

// get returns the server of the process.
func (s *shared) get(ctx context.Context) (*host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.host == nil && s.err == nil {
		s.host, s.err = s.find(ctx)
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.host, s.host.check()
}

// find is not ended by the context of the caller who happens to be the first.
func (*shared) find(ctx context.Context) (*host, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout)
	defer cancel()
	return newHost(ctx, CurrentEnvironment())
}

// Shutdown stops the server that [Open] and [New] have started, if they have, and
// returns when its folder is gone. It is for the end of a program that does not
// want to leave that to the moments after its end. Later calls of Open start
// another server.
func Shutdown() error {
	process.mu.Lock()
	defer process.mu.Unlock()

	host := process.host
	process.host, process.err = nil, nil
	if host == nil {
		return nil
	}
	return host.close()
}
