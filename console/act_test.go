package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

const asJSON = "application/json"

// planned is a plan as a form sends it back.
func planned(t testing.TB, h http.Handler) (*reaper.DryRunResult, url.Values) {
	t.Helper()
	text := get(t, h, "/shop/plan.json?limit=10").body
	plan := &reaper.DryRunResult{}
	require.NoError(t, json.Unmarshal([]byte(text), plan))
	form := url.Values{"plan": {text}, "ticked": {"yes"}}
	for _, job := range plan.Jobs {
		form.Add("job", job.JobID)
	}
	return plan, form
}

// Somebody has reviewed ten jobs. Another job, or one that is no longer what was
// reviewed, is not theirs to decide.
func TestAPlanIsAppliedExactly(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	plan, form := planned(t, h)
	form["job"] = form["job"][1:] // the first one is unticked
	_, err := pool.Exec(t.Context(), "update job_queue set lease_until = now() + interval '1 hour' where job_id = $1", plan.Jobs[1].JobID)
	require.NoError(t, err)

	var result reaper.ApplyResult
	require.NoError(t, json.Unmarshal([]byte(post(t, h, "/shop/plan", form, "Accept", asJSON).body), &result))
	require.Equal(t, "alice", result.Actor)
	require.Len(t, result.Actions, 8)
	require.Equal(t, []reaper.Skip{{JobID: plan.Jobs[1].JobID, Reason: reaper.SkipRenewed}}, result.Skipped)
	require.Equal(t, plan.Jobs[0].JobID, one[string](t, pool, `select job_id::text from job_queue
		where state = 'leased' and lease_until < now() order by lease_until limit 1`))

	again := post(t, h, "/shop/plan", form)
	require.Contains(t, again.body, "another reaper has settled it")
}

// A plan is no way past the gates.
func TestAClosedGateRefusesAPlan(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	_, form := planned(t, h)
	require.NoError(t, gates.Table{}.Set(t.Context(), pool, "ops", gates.ReaperEnabled, "false"))
	got := post(t, h, "/shop/plan", form)
	require.Contains(t, got.body, "Nothing was changed.")
	require.Contains(t, got.body, "queue.lease.reaper_enabled=false")
	require.Equal(t, 60, one[int](t, pool, "select count(*) from job_queue where state = 'leased' and lease_until < now()"))
}

// An empty form must not stand for all jobs.
func TestAPlanWithoutJobsIsRefused(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	_, form := planned(t, h)
	form.Del("job")
	require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/plan", form).StatusCode)
	for _, text := range []string{"", "{}", "[1]", `{"jobs":[{"job_id":"x"}]}`} {
		got := post(t, h, "/shop/plan", url.Values{"plan": {text}})
		require.Equal(t, http.StatusBadRequest, got.StatusCode, text)
	}
}

// Closing is what somebody does in a hurry; opening must not happen by a slip.
func TestOpeningIsTypedAndClosingIsOneClick(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	cfg := shop(pool)
	cfg.Fresh = time.Hour
	h := handler(t, cfg)
	for _, key := range []string{gates.SubstrateEnabled, gates.ReaperEnabled, gates.DryRunOnly} {
		open, closed := "true", "false"
		if key == gates.DryRunOnly {
			open, closed = closed, open
		}
		require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/gates/close", url.Values{"key": {key}}).StatusCode)
		require.Equal(t, closed, setting(t, pool, key))
		require.Contains(t, get(t, h, "/shop/gates").body, `id="open-`+key, "it shows at once")
		require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/gates/open", url.Values{"key": {key}, "word": {"yes"}}).StatusCode)
		require.Equal(t, closed, setting(t, pool, key))
		require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/gates/open", url.Values{"key": {key}, "word": {" Open "}}).StatusCode)
		require.Equal(t, open, setting(t, pool, key))
	}
	for _, key := range []string{gates.BackoffBaseSec, gates.WindowUntil, "other"} {
		require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/gates/close", url.Values{"key": {key}}).StatusCode)
	}
}

// A window without an end is a gate that is forgotten.
func TestAWindowHasAnEnd(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	for _, duration := range []string{"", "0s", "31d", "soon", "-1h", "1e9d"} {
		got := post(t, h, "/shop/window/open", url.Values{"duration": {duration}, "word": {"open"}})
		require.Equal(t, http.StatusBadRequest, got.StatusCode, duration)
	}
	require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/window/open", url.Values{"duration": {"1h"}}).StatusCode)
	got := post(t, h, "/shop/window/open", url.Values{"duration": {"1d 2h"}, "word": {"open"}}, "Accept", asJSON)
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.Contains(t, got.body, `"window_until"`)
	require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/window/close", nil).StatusCode)
	require.Empty(t, setting(t, pool, gates.WindowUntil))
	require.Equal(t, "true", setting(t, pool, gates.DryRunOnly))
}

// A redrive starts work again; it must be the work that was shown.
func TestRedriveTakesTheLettersThatWereShown(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	_, err := pool.Exec(t.Context(), `update job_queue set state = 'ready' where job_id =
		(select job_id from job_dead_letter where job_kind = 'charge_card' limit 1)`)
	require.NoError(t, err)
	var shown struct {
		Letters []deadletter.Letter
		Kinds   []struct{ Count int }
		Skipped []struct{ State string }
	}
	require.NoError(t, json.Unmarshal([]byte(get(t, h, "/shop/redrive.json?kind=charge_card").body), &shown))
	require.Len(t, shown.Letters, 15)
	require.Equal(t, 15, shown.Kinds[0].Count)
	require.Equal(t, "ready", shown.Skipped[0].State)

	form := url.Values{}
	for _, letter := range shown.Letters {
		form.Add("id", letter.DeadLetterID)
	}
	var result deadletter.RedriveResult
	require.NoError(t, json.Unmarshal([]byte(post(t, h, "/shop/redrive", form, "Accept", asJSON).body), &result))
	require.Equal(t, 14, result.RedrivenCount)
	require.Equal(t, 1, result.SkippedCount)
	require.Equal(t, 14, one[int](t, pool, "select count(*) from job_dead_letter where redriven_by = 'alice'"))
	require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/redrive", nil).StatusCode, "none is not all")
}

// What a purge removes is gone.
func TestPurgeTakesTheLettersThatWereShown(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	h := handler(t, shop(pool))
	require.Contains(t, get(t, h, "/shop/purge?older=1d").body, "no dead letter to purge")

	var shown struct{ Letters []deadletter.Letter }
	require.NoError(t, json.Unmarshal([]byte(get(t, h, "/shop/purge.json?older=1d&unredriven=yes&kind=charge_card").body), &shown))
	require.Len(t, shown.Letters, 15)
	form := url.Values{"older": {"1d"}, "unredriven": {"yes"}}
	for _, letter := range shown.Letters[:10] {
		form.Add("id", letter.DeadLetterID)
	}
	require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/purge", form).StatusCode, "the word is missing")
	form.Set("word", "purge")
	got := post(t, h, "/shop/purge", form)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	require.Equal(t, 20, one[int](t, pool, "select count(*) from job_dead_letter"))
	form.Set("older", "9d")
	require.Equal(t, http.StatusOK, post(t, h, "/shop/purge", form).StatusCode)
	require.Equal(t, 20, one[int](t, pool, "select count(*) from job_dead_letter"), "younger letters stay")
}

// A payload may hold what nobody who looks at a queue should read.
func TestPayloadsAreHiddenUnlessConfigured(t *testing.T) {
	t.Parallel()
	cfg := shop(filled(t))
	letter := "/shop/letter?id=" + aLetter(t, cfg)
	redacted := func(_ string, _ json.RawMessage) json.RawMessage { return json.RawMessage(`{"card":"hidden"}`) }
	tests := map[string]struct {
		show   bool
		redact func(string, json.RawMessage) json.RawMessage
		want   string
		leaks  bool
	}{
		"hidden":              {false, nil, "Payloads are hidden", false},
		"hidden with redact":  {false, redacted, "Payloads are hidden", false},
		"shown":               {true, nil, "4111-", true},
		"redacted":            {true, redacted, "&#34;hidden&#34;", false},
		"redacted to nothing": {true, func(string, json.RawMessage) json.RawMessage { return nil }, "Payloads are hidden", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			cfg.ShowPayloads, cfg.Redact = test.show, test.redact
			h := handler(t, cfg)
			page, document := get(t, h, letter).body, get(t, h, letter, "Accept", asJSON).body
			require.Contains(t, page, test.want)
			require.Equal(t, test.leaks, containsCard(page))
			require.Equal(t, test.leaks, containsCard(document))
		})
	}
	require.Equal(t, http.StatusNotFound, get(t, handler(t, cfg), "/shop/letter?id=00000000-0000-0000-0000-000000000000").StatusCode)
}

// A fix that cannot be copied is typed wrongly at night.
func TestVerifyShowsTheSQLAndRehearseFindsATrigger(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	_, err := pool.Exec(t.Context(), `drop index job_queue_lease_until_idx;
		create function reject() returns trigger language plpgsql as $$ begin raise exception 'not on a Sunday'; end $$;
		create trigger reject before update on job_queue for each row execute function reject()`)
	require.NoError(t, err)
	h := handler(t, shop(pool))
	require.Regexp(t, `(?i)create index`, get(t, h, "/shop/verify").body)
	require.Contains(t, post(t, h, "/shop/rehearse", nil).body, "Rehearse")
	require.Contains(t, post(t, h, "/shop/rehearse", nil, "Accept", asJSON).body, reaper.CodeRehearsalFailed)
}

// A database without the tables is the first thing that a new user opens.
func TestAnEmptyDatabaseSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(pgtest.Empty(t)))
	got := get(t, h, "/shop/overview")
	require.Equal(t, http.StatusBadGateway, got.StatusCode)
	require.Contains(t, got.body, "see Verify")
	require.Contains(t, get(t, h, "/shop/verify").body, "job_queue")
}

// What the loop has done is what people ask for first.
func TestHistoryAndPassesAreShown(t *testing.T) {
	t.Parallel()
	cfg := crowded(t)
	h := handler(t, cfg)
	require.Contains(t, get(t, h, "/shop/history").body, "shop-reaper")
	require.Contains(t, get(t, h, "/shop/overview").body, "Last passes of the loop")
	require.Equal(t, http.StatusNotFound, get(t, h, "/billing/history").StatusCode)
	require.NotContains(t, get(t, h, "/billing/overview").body, "History")
	cfg.Databases[0].History = nil
	require.NotContains(t, get(t, handler(t, cfg), "/shop/overview").body, "History")
	var _ console.History = console.HistoryFunc(nil)
}
