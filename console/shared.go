package console

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// trouble is why the newest read failed, and since when reads have.
type trouble struct {
	Text  string    `json:"error"`
	Since time.Time `json:"since"` // by this machine's clock
	Seen  time.Time `json:"-"`     // when what is shown was read; zero: nothing is

	status int
	cause  error
}

// seen is what a read found, or the last one that found something.
type seen[T any] struct {
	value   T
	at      time.Time // of the read, by this machine's clock; zero: there is no value
	trouble *trouble
}

// shared lets everybody who asks for the same thing at about the same time have one
// read of it.
type shared[T any] struct {
	fresh time.Duration
	log   *slog.Logger

	mu      sync.Mutex
	entries map[string]*entry[T]
}

type entry[T any] struct {
	busy    chan struct{} // closed at the end of the read under way; nil: there is none
	expired bool          // what that read finds may be older than a change
	asked   time.Time     // when the newest read ended
	last    seen[T]
}

// keptEntries bounds how many answers are kept.
const keptEntries = 64

// readTimeout bounds a read that people share.
const readTimeout = 10 * time.Second

// get returns what is known under key, and reads it when that is not fresh. The read
// goes on when the one who began it leaves: others wait for it.
func (s *shared[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (seen[T], error) {
	for {
		e, mine := s.claim(key)
		switch {
		case mine:
			s.read(context.WithoutCancel(ctx), e, read)
			return s.of(e), nil
		case e.busy == nil:
			return e.last, nil
		}
		select {
		case <-e.busy:
		case <-ctx.Done():
			return seen[T]{}, context.Cause(ctx)
		}
	}
}

// claim returns a copy of a fresh or busy entry, or the entry itself for the caller
// to read.
func (s *shared[T]) claim(key string) (e *entry[T], mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[string]*entry[T]{}
	}
	e = s.entries[key]
	if e == nil {
		s.forget()
		e = &entry[T]{}
		s.entries[key] = e
	}
	if e.busy != nil || time.Since(e.asked) < s.fresh {
		found := *e
		return &found, false
	}
	e.busy = make(chan struct{})
	return e, true
}

// forget makes room: what was read longest ago goes. Reads under way stay.
func (s *shared[T]) forget() {
	if len(s.entries) < keptEntries {
		return
	}
	oldest := ""
	for key, e := range s.entries {
		if e.busy == nil && (oldest == "" || e.asked.Before(s.entries[oldest].asked)) {
			oldest = key
		}
	}
	delete(s.entries, oldest)
}

// read reads, and ends the wait of the others.
func (s *shared[T]) read(ctx context.Context, e *entry[T], read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	value, err := guarded(ctx, read)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := e.last.trouble
	close(e.busy)
	e.busy, e.asked = nil, time.Now()
	if e.expired {
		e.expired, e.asked = false, time.Time{}
	}
	e.last = e.last.then(value, err, began)
	s.report(was, e.last.trouble)
}

// guarded makes an error of a panic.
func guarded[T any](ctx context.Context, read func(context.Context) (T, error)) (value T, err error) {
	defer func() { err = withPanic(err, recover()) }()
	return read(ctx)
}

// report logs when reads begin to fail, and when they work again. What is wrong with a
// request is for the one who asks.
func (s *shared[T]) report(was, now *trouble) {
	failed := func(t *trouble) bool { return t != nil && t.status >= http.StatusInternalServerError }
	switch {
	case failed(now) && !failed(was):
		s.log.Warn("console cannot read", slog.String("error", now.cause.Error()))
	case failed(was) && now == nil:
		s.log.Info("console reads again", slog.Duration("after", time.Since(was.Since)))
	}
}

// of copies what an entry knows.
func (s *shared[T]) of(e *entry[T]) seen[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.last
}

// then is what is known after one more read.
func (was seen[T]) then(value T, err error, began time.Time) seen[T] {
	if err == nil {
		return seen[T]{value: value, at: began}
	}
	now := &trouble{Since: began, Seen: was.at, cause: err}
	now.status, now.Text = explain(err)
	if was.trouble != nil {
		now.Since = was.trouble.Since
	}
	was.trouble = now
	return was
}

// expire has the next who asks read again, after a change.
func (s *shared[T]) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		e.asked, e.expired = time.Time{}, e.busy != nil
	}
}
