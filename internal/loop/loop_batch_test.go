package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A backlog whose batches exceed the server's statement_timeout would never get
// smaller, however often the same batch is tried.
func TestALoopHalvesABatchThatTookTooLong(t *testing.T) {
	t.Parallel()

	slow, ok, broken := reap{err: errSlow}, reap{}, reap{err: errServer}
	tests := map[string]struct {
		reaps   []reap
		batches []int
	}{
		"until it goes through":      {[]reap{slow, slow, slow, ok}, []int{100, 50, 25, 12, 24, 48, 96, 100, 100}},
		"down to one job":            {[]reap{slow}, []int{100, 50, 25, 12, 6, 3, 1, 1, 1}},
		"again where it grows":       {[]reap{slow, slow, ok, slow, ok}, []int{100, 50, 25, 50, 25, 50, 100}},
		"but not for another error":  {[]reap{broken, slow, broken, ok}, []int{100, 100, 50, 50, 100}},
		"nor while a gate is closed": {[]reap{slow, {refused: true}, {refused: true}, ok}, []int{100, 50, 50, 50, 100}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config
			cfg.Batch = 100
			s := &script{polls: []poll{{result: stale()}}, reaps: test.reaps}
			play(t, s, cfg, 10*time.Minute)
			require.Equal(t, test.batches, s.batches[:len(test.batches)])
		})
	}
}

// While smaller batches succeed, the waits must not get longer. When they do not, the loop
// must not keep the database busy.
func TestALoopTriesASmallerBatchSoon(t *testing.T) {
	t.Parallel()

	cfg := config
	cfg.Batch = 1 << 9
	log := play(t, &script{polls: []poll{{result: stale()}}, reaps: []reap{{err: errSlow}}}, cfg, 10*time.Minute)

	for i := range 9 { // a poll and a reap each time
		require.Equal(t, time.Duration(i)*cfg.MinInterval, log[2*i].at)
	}
	require.Greater(t, log[len(log)-1].at-log[len(log)-3].at, 27*time.Second)
}
