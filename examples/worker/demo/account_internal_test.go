package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// stage is a demo that is over, of one job that succeeded and one dead letter, with
// nobody on its seats.
func stage(t *testing.T) *demo {
	t.Helper()
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, witness)
	fixture.Exec(t, pool, `set application_name = 'worker-1';
		insert into job_queue (job_kind, payload) values ('send', '"good"'), ('send', '"bad"');
		update job_queue set state = 'leased', lease_owner = 'worker-1/x', lease_until = now();
		update job_queue set state = 'succeeded', lease_owner = null where payload = '"good"';
		update job_queue set attempts = 1 where payload = '"bad"';
		update job_queue set state = 'dead_letter', last_error = 'no', lease_owner = null where payload = '"bad"';
		insert into worker_receipt select job_id, 'worker-1' from job_queue where payload = '"good"';
		insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
			select job_id, job_kind, attempts, max_attempts, 'no', 'worker-1', '{}' from job_queue where payload = '"bad"';
		reset application_name`)
	d := &demo{cfg: Config{For: 2 * every * 100 / 64}, db: &database{Database: &pgtest.Database{Pool: pool}}, story: newStory(&strings.Builder{}), crew: &crew{}}
	require.Equal(t, 2, d.supply())
	return d
}

// An account that lets a job pass which ended twice, or never, is no account.
func TestEndedOnceFindsWhatDidNot(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		tamper string
		ok     bool
	}{
		"all is well":                    {`select 1`, true},
		"a job has not ended":            {`update job_queue set state = 'ready' where payload = '"good"'`, false},
		"it succeeded twice":             {`insert into worker_receipt select job_id, 'worker-2' from worker_receipt`, false},
		"it has no receipt":              {`delete from worker_receipt`, false},
		"a dead letter is missing":       {`delete from job_dead_letter`, false},
		"there are two of it":            {`insert into job_dead_letter select gen_random_uuid(), job_id, job_kind, attempts, max_attempts, final_error, moved_by, now(), job from job_dead_letter`, false},
		"it died and then it succeeded":  {`update job_queue set state = 'succeeded' where payload = '"bad"'`, false},
		"a dead one has a receipt":       {`insert into worker_receipt select job_id, 'worker-2' from job_dead_letter`, false},
		"a job has gone":                 {`delete from job_queue where payload = '"good"'`, false},
		"it succeeded, and did so again": {`update job_queue set state = 'leased' where payload = '"good"'; update job_queue set state = 'succeeded' where payload = '"good"'`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := stage(t)
			fixture.Exec(t, d.db.Pool, test.tamper)

			f, err := d.endedOnce(t.Context())

			require.NoError(t, err)
			require.Equal(t, test.ok, f.ok, f.text)
		})
	}
}

// A job that a killed worker left behind, and that nobody brought back.
func TestCameBackFindsWhatDidNot(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		then string
		ok   bool
	}{
		"nobody did anything": {`select 1`, false},
		"it was reset": {`update job_queue set state = 'retry_waiting', attempts = attempts + 1,
			last_error = 'lease_expired_reaped', lease_owner = null`, true},
		"it was moved": {`update job_queue set attempts = attempts + 1; update job_queue set state = 'dead_letter',
			last_error = 'lease_expired_reaped_at_max_attempts', lease_owner = null`, true},
		"it was given back":        {`update job_queue set state = 'ready', lease_owner = null`, false},
		"the dead man finished it": {`update job_queue set state = 'succeeded', lease_owner = null`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := stage(t)
			fixture.Exec(t, d.db.Pool, `update job_queue set state = 'leased', lease_owner = 'worker-2/y'`)
			held, err := d.db.held(t.Context(), "worker-2")
			require.NoError(t, err)
			require.Len(t, held, 2)
			d.kills = []kill{{name: "worker-2", jobs: held}}
			fixture.Exec(t, d.db.Pool, test.then)

			f, err := d.cameBack(t.Context())

			require.NoError(t, err)
			require.Equal(t, test.ok, f.ok, f.text)
		})
	}

	f, err := stage(t).cameBack(t.Context())
	require.NoError(t, err)
	require.False(t, f.ok, "a demo in which nobody lost a job shows nothing")
}

// Metrics that are one off.
func TestCompareFindsAMetricThatIsWrong(t *testing.T) {
	t.Parallel()
	const (
		succeeded = `worker_jobs_total{outcome="succeeded",kind="send"} 1`
		buried    = `worker_jobs_total{outcome="buried",kind="send"} 1`
	)

	tests := map[string]struct {
		series []string
		ok     bool
	}{
		"all is well":             {[]string{succeeded, buried}, true},
		"and what no table knows": {[]string{succeeded, buried, `worker_jobs_total{outcome="lost",kind="send"} 1`}, true},
		"one too many":            {[]string{`worker_jobs_total{outcome="succeeded",kind="send"} 2`, buried}, false},
		"one too few":             {[]string{succeeded}, false},
		"of another kind":         {[]string{`worker_jobs_total{outcome="succeeded",kind="sing"} 1`, buried}, false},
		"of another outcome":      {[]string{`worker_jobs_total{outcome="retried",kind="send"} 1`, buried}, false},
		"a reaper that lies": {[]string{succeeded, buried,
			`leasereaper_reaped_total{outcome="reset_to_retry_waiting",kind="send",source="loop"} 1`}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := stage(t)
			d.crew.seats = []*seat{{worker: exporting(t, "counter", test.series...)}}

			f, err := d.compare(t.Context())

			require.NoError(t, err)
			require.Equal(t, test.ok, f.ok, f.text)
		})
	}
}

// A worker that counted what it had not done yet, and died.
func TestTheKilledMayNotHaveSaidMoreThanTheyDid(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		said int
		ok   bool
	}{
		"less": {0, true}, "just that": {1, true}, "more": {2, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := stage(t)
			d.kills = []kill{{name: "worker-1", counts: counts{{"succeeded", "send"}: test.said}}}

			f, err := d.metricsOfTheKilled(t.Context())

			require.NoError(t, err)
			require.Equal(t, test.ok, f.ok, f.text)
		})
	}
}

// A worker that sees another queue than the others, or none.
func TestGaugesFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	well := map[string]int{
		"leasereaper_database_up": 1, "leasereaper_stale_leases": 0, "leasereaper_oldest_overdue_seconds": 0,
		`leasereaper_gate_open{gate="a"}`: 1, `leasereaper_gate_open{gate="b"}`: 1, `leasereaper_gate_open{gate="c"}`: 1, `leasereaper_gate_open{gate="d"}`: 1,
	}
	look := func(wrong string) bool {
		var series []string
		for name, value := range well {
			if name == wrong {
				value = 1 - value
			}
			series = append(series, fmt.Sprint(name, " ", value))
		}
		slices.Sort(series)
		d := &demo{crew: &crew{seats: []*seat{{worker: exporting(t, "gauge", series...)}}}}
		f, err := d.gauges(t.Context())
		require.NoError(t, err)
		return f.ok
	}
	require.True(t, look("none"))
	for name := range well {
		require.False(t, look(name), name)
	}
}

// exporting is a worker that exports these series, which are all of one type.
func exporting(t *testing.T, kind string, series ...string) *worker {
	t.Helper()
	var text strings.Builder
	last := ""
	for _, line := range series {
		if name := strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0]; name != last {
			fmt.Fprintf(&text, "# TYPE %s %s\n", name, kind)
			last = name
		}
		fmt.Fprintln(&text, line)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, text.String())
	}))
	t.Cleanup(server.Close)
	return &worker{name: "worker-1", addr: server.Listener.Addr().String()}
}
