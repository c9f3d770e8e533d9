package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// Behind a proxy that sends reads to two servers in turn, a loop that remembers only one
// of them would see a restart at each poll and never reap.
func TestServersThatAnswerInTurnAreNoRestart(t *testing.T) {
	t.Parallel()

	older, newer := loop.Server{Started: boot.Started.Add(-time.Hour)}, loop.Server{Started: boot.Started.Add(time.Hour)}
	tests := map[string]struct {
		other   loop.Server
		settled int
	}{
		"a standby": {standby, 0},
		"a primary, which may be one of a failover": {newer, 1},
		"a primary that is older":                   {older, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turns []poll
			for range 1000 {
				turns = append(turns, poll{result: stale()}, poll{result: answer(test.other)})
			}

			log := whats(play(t, &script{polls: turns}, config, 10*time.Minute))

			require.Equal(t, test.settled, count(log, "settle"))
			require.Greater(t, count(log, "reap"), 8)
		})
	}
}

// A loop that has run for years must not remember each restart.
func TestALoopForgetsServersOfLongAgo(t *testing.T) {
	t.Parallel()

	var restarts []poll
	for i := range 100 {
		restarts = append(restarts, poll{result: answer(loop.Server{Started: boot.Started.Add(time.Duration(i) * time.Hour)})})
	}
	restarts = append(restarts, poll{result: stale()}) // the first one again

	log := whats(play(t, &script{polls: restarts}, config, 100*config.Settle+config.Interval))

	require.Equal(t, 100, count(log, "settle"))
}
