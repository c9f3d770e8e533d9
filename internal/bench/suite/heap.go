package suite

import (
	"runtime/metrics"
	"sync"
	"time"
)

// peak is the most that the heap's objects, the dead ones among them that no
// collection has freed yet, have taken.
type peak struct{ bytes uint64 }

// watch looks at the heap each millisecond, until it is stopped.
func (p *peak) watch() (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.look()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); group.Wait() }
}

func (p *peak) look() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	p.bytes = max(p.bytes, sample[0].Value.Uint64())
}
