package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

// standby is a standby, not the server boot.
var standby = loop.Server{Started: boot.Started.Add(time.Minute), Standby: true}

// No worker could renew while the database was down. If jobs were reaped as soon as it is
// back, every running job would run twice.
func TestALoopSettlesAfterAnOutage(t *testing.T) {
	t.Parallel()

	restarted := answer(loop.Server{Started: boot.Started.Add(time.Hour)})
	promoted := answer(loop.Server{Started: standby.Started})
	tests := map[string]struct {
		script script
		want   []string
	}{
		"a poll failed": {
			script{polls: []poll{{result: idle()}, {err: errDown}, {result: stale()}, {result: stale()}}},
			[]string{"poll", "poll", "poll", "settle", "poll", "reap"},
		},
		"a reap failed": {
			script{polls: []poll{{result: stale()}}, reaps: []reap{{err: errDown}, {}}},
			[]string{"poll", "reap", "write", "poll", "settle", "poll", "reap"},
		},
		"reads work before writes do": {
			script{polls: []poll{{result: stale()}}, reaps: []reap{{err: errDown}, {}}, writes: []error{errDown, errSlow, errDown, nil}},
			[]string{"poll", "reap", "write", "write", "write", "write", "poll", "settle", "poll", "reap"},
		},
		"the server took the write and rejected it": {
			script{polls: []poll{{result: stale()}}, reaps: []reap{{err: errDown}, {}}, writes: []error{errServer}},
			[]string{"poll", "reap", "write", "poll", "settle", "poll", "reap"},
		},
		"a poll took too long": {
			script{polls: []poll{{err: errSlow}, {result: stale()}}},
			[]string{"poll", "poll", "settle", "poll", "reap"},
		},
		"a reap took too long": {
			script{polls: []poll{{result: stale()}}, reaps: []reap{{err: errSlow}, {}}},
			[]string{"poll", "reap", "poll", "reap"},
		},
		"another server answers": {
			script{polls: []poll{{result: idle()}, {result: restarted}}},
			[]string{"poll", "poll", "settle", "poll", "reap"},
		},
		"a standby was promoted": {
			script{polls: []poll{{result: answer(standby)}, {result: promoted}}},
			[]string{"poll", "reap", "poll", "settle", "poll", "reap"},
		},
		"the server's own error is no outage": {
			script{polls: []poll{{result: idle()}, {err: errServer}, {result: stale()}}},
			[]string{"poll", "poll", "poll", "reap"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := play(t, &test.script, config, 150*time.Second)
			require.Equal(t, test.want, whats(log)[:len(test.want)])
			for i, e := range log[:len(test.want)] {
				if e.what == "settle" {
					require.Equal(t, config.Settle, log[i+1].at-e.at)
				}
			}
		})
	}
}

// After a clock was set back, a server's start is in the future. The loop must not wait
// for that time.
func TestALoopSettlesNoLongerThanItIsTold(t *testing.T) {
	t.Parallel()

	unborn := stale()
	unborn.Uptime = -time.Hour
	log := play(t, &script{polls: []poll{{result: unborn}}}, config, 45*time.Second)

	require.Equal(t, []string{"poll", "settle", "poll", "reap"}, whats(log)[:4])
	require.Equal(t, config.Settle, log[2].at)
}

// A reaper that starts with the database has not seen the outage. It must still wait for
// the workers, for the rest of Settle.
func TestALoopSettlesWithAYoungServer(t *testing.T) {
	t.Parallel()

	young := stale()
	young.Uptime = 10 * time.Second
	log := play(t, &script{polls: []poll{{result: young}}}, config, 25*time.Second)

	require.Equal(t, []string{"poll", "settle", "poll", "reap"}, whats(log)[:4])
	require.Equal(t, 20*time.Second, log[2].at)
}
