package pgtest

import (
	"context"
	"sync"
	"time"
)

// findTimeout bounds the search for a server, including a download.
const findTimeout = 5 * time.Minute

// shared is the server of the process. The first test finds or starts it. An error is
// kept, so that not every test waits for the same error.
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

// find finds or starts a server. It ignores the end of ctx: other tests need the server
// too.
func (*shared) find(ctx context.Context) (*host, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout)
	defer cancel()
	return newHost(ctx, CurrentEnvironment())
}

// Shutdown stops the server if [Open] or [New] has started one, and returns when its
// folder is removed. Without Shutdown that happens shortly after the process has ended.
// Later calls of Open start another server.
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
