package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No worker could renew while the database was away; reaping at its return
// would give every running job to a second worker.
func TestALoopSettlesAfterAnOutage(t *testing.T) {
	t.Parallel()

	restarted := stale()
	restarted.Server = boot.Add(time.Hour)
	tests := map[string]struct {
		script script
		want   []string
	}{
		"a look failed": {
			script{looks: []look{{sight: idle()}, {err: errDown}, {sight: stale()}, {sight: stale()}}},
			[]string{"look", "look", "look", "settle", "look", "reap"},
		},
		"a reap failed": {
			script{looks: []look{{sight: stale()}}, reaps: []reap{{err: errDown}, {}}},
			[]string{"look", "reap", "look", "settle", "look", "reap"},
		},
		"another server answers": {
			script{looks: []look{{sight: idle()}, {sight: restarted}}},
			[]string{"look", "look", "settle", "look", "reap"},
		},
		"the server's own error is no outage": {
			script{looks: []look{{sight: idle()}, {err: errServer}, {sight: stale()}}},
			[]string{"look", "look", "look", "reap"},
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

// A clock that was set back makes a server start in the future; nobody waits for
// that.
func TestALoopSettlesNoLongerThanItIsTold(t *testing.T) {
	t.Parallel()

	unborn := stale()
	unborn.Uptime = -time.Hour
	log := play(t, &script{looks: []look{{sight: unborn}}}, config, 45*time.Second)

	require.Equal(t, []string{"look", "settle", "look", "reap"}, whats(log)[:4])
	require.Equal(t, config.Settle, log[2].at)
}

// A reaper that starts together with the database has not seen the outage, and
// must give the workers their time all the same: what is left of it.
func TestALoopSettlesWithAYoungServer(t *testing.T) {
	t.Parallel()

	young := stale()
	young.Uptime = 10 * time.Second
	log := play(t, &script{looks: []look{{sight: young}}}, config, 25*time.Second)

	require.Equal(t, []string{"look", "settle", "look", "reap"}, whats(log)[:4])
	require.Equal(t, 20*time.Second, log[2].at)
}
