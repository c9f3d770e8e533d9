package interleave_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lease-governance/leasereaper/internal/interleave"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

var (
	all      = flag.Bool("all", false, "play every schedule, or 10000 where there are more")
	most     = flag.Int("schedules", 200, "how many schedules a scenario has at most, without -all")
	seed     = flag.Uint64("seed", 1, "what schedules are drawn from where there are more")
	schedule = flag.String("schedule", "", "play this one alone: scenario/schedule")
)

// The last lines of the output.
var interleavings, mutantsCaught string

func TestMain(m *testing.M) {
	code := m.Run()
	for _, line := range []string{interleavings, mutantsCaught} {
		if line != "" && testing.Verbose() {
			fmt.Println(line)
		}
	}
	if err := errors.Join(pgtest.Shutdown(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Two calls meet in an order that no test happened to have, and a job is lost or run
// twice.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	var played, wrong atomic.Int64
	t.Cleanup(func() {
		interleavings = fmt.Sprintf("interleavings: %d schedules, %d violations", played.Load(), wrong.Load())
	})
	name, one, replay := strings.Cut(*schedule, "/")
	for _, s := range scenarios {
		if replay && s.name != name {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			defer func() { played.Add(int64(w.played)) }()
			if replay {
				only, err := interleave.Parse(one)
				require.NoError(t, err)
				_, err = w.play(t.Context(), len(only), only.Follow)
				require.NoError(t, err)
				return
			}
			if err := w.explore(t); err != nil {
				wrong.Add(1)
				require.NoError(t, err)
			}
		})
	}
}

// limit is how many schedules are played where there are more, with -all.
const limit = 10_000

// explore plays the schedules without a cut, and then those with one.
func (w *world) explore(t *testing.T) error {
	t.Helper()
	play := func(cuts int, choose interleave.Choose) (*interleave.Record, error) {
		return w.play(t.Context(), cuts, choose)
	}
	most := min(*most, limit)
	if *all {
		most = limit
	}
	for cuts, count := range []int{w.scenario.whole, w.scenario.whole + w.scenario.cuts} {
		if count > most {
			if err := interleave.Sample(play, cuts, most, *seed); err != nil {
				return err
			}
			continue
		}
		n, _, err := interleave.Every(play, cuts, limit)
		if err != nil {
			return err
		}
		require.Equal(t, count, n, "schedules with %d cuts at most", cuts)
	}
	return nil
}

// A schedule that is printed must fail again when it is played again, else it helps nobody.
func TestTheSameScheduleHasTheSameOutcome(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			var before, after []string
			var schedules []interleave.Schedule
			err := interleave.Sample(func(cuts int, choose interleave.Choose) (*interleave.Record, error) {
				record, err := w.play(t.Context(), cuts, choose)
				before = append(before, w.last.digest())
				schedules = append(schedules, record.Schedule)
				return record, err
			}, 1, 10, *seed)
			require.NoError(t, err)
			for _, s := range schedules {
				_, err := w.play(t.Context(), 1, s.Follow)
				require.NoError(t, err)
				after = append(after, w.last.digest())
			}
			require.Equal(t, before, after)
		})
	}
}
