package deadletter_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// The JSON is what other tools read; a field that appears, goes or changes its
// form breaks them, and so does a list that is null.
func TestTheLettersJSONIsFixed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.FixedZone("elsewhere", 3600))
	by := "me"

	tests := map[string]struct {
		result any
		want   string
	}{
		"a page": {
			deadletter.Page{EvaluatedAt: at, Limit: 2, Next: "n", Letters: []deadletter.Letter{
				{DeadLetterID: "l-1", JobID: "j-1", JobKind: "k", Attempts: 5, MaxAttempts: 5, FinalError: "e", MovedBy: "a", MovedAt: at},
				{DeadLetterID: "l-2", RedrivenAt: &at, RedrivenBy: &by, Job: json.RawMessage(`{"n":9007199254740993}`)},
			}},
			`{"evaluated_at":"2026-03-01T11:00:00.123456Z","limit":2,"letters":[
				{"dead_letter_id":"l-1","job_id":"j-1","job_kind":"k","attempts":5,"max_attempts":5,"final_error":"e","moved_by":"a",
				"moved_at":"2026-03-01T11:00:00.123456Z","redriven_at":null,"redriven_by":null},
				{"dead_letter_id":"l-2","job_id":"","job_kind":"","attempts":0,"max_attempts":0,"final_error":"","moved_by":"",
				"moved_at":"0001-01-01T00:00:00Z","redriven_at":"2026-03-01T11:00:00.123456Z","redriven_by":"me",
				"job":{"n":9007199254740993}}],"next":"n"}`,
		},
		"an empty page": {
			deadletter.Page{EvaluatedAt: at, Limit: 2},
			`{"evaluated_at":"2026-03-01T11:00:00.123456Z","limit":2,"letters":[]}`,
		},
		"a redrive": {
			deadletter.RedriveResult{
				Actor: "a", RedrivenAt: at, RedrivenCount: 2, SkippedCount: 1, FailedCount: 1, Next: "n",
				Redriven: []deadletter.Redriven{{JobID: "j-1", DeadLetterIDs: []string{"l-2", "l-1"}, Rebuilt: true}, {JobID: "j-2"}},
				Skipped:  []deadletter.Skip{{DeadLetterID: "l-3", JobID: "j-3", Reason: deadletter.SkipAlive}},
				Failures: []deadletter.Failure{{DeadLetterID: "l-4", JobID: "j-4", SQLState: "23502", Error: "no"}},
			},
			`{"actor":"a","redriven_at":"2026-03-01T11:00:00.123456Z","redriven_count":2,"skipped_count":1,"failed_count":1,
				"redriven":[{"job_id":"j-1","dead_letter_ids":["l-2","l-1"],"rebuilt":true},
				{"job_id":"j-2","dead_letter_ids":[],"rebuilt":false}],
				"skipped":[{"dead_letter_id":"l-3","job_id":"j-3","reason":"alive"}],
				"failures":[{"dead_letter_id":"l-4","job_id":"j-4","sqlstate":"23502","error":"no"}],"next":"n"}`,
		},
		"a redrive of nothing": {
			deadletter.RedriveResult{Actor: "a", RedrivenAt: at},
			`{"actor":"a","redriven_at":"2026-03-01T11:00:00.123456Z","redriven_count":0,"skipped_count":0,"failed_count":0,
				"redriven":[],"skipped":[],"failures":[]}`,
		},
		"a purge": {
			deadletter.PurgeResult{
				RedrivenCount: 1, UnredrivenCount: 2, JobCount: 3, Batches: 4, FailedCount: 1,
				Failures: []deadletter.Failure{{DeadLetterID: "l", JobID: "j", SQLState: "23503", Error: "no"}},
			},
			`{"redriven_count":1,"unredriven_count":2,"job_count":3,"batches":4,"failed_count":1,
				"failures":[{"dead_letter_id":"l","job_id":"j","sqlstate":"23503","error":"no"}]}`,
		},
		"a purge of nothing": {
			deadletter.PurgeResult{},
			`{"redriven_count":0,"unredriven_count":0,"job_count":0,"batches":0,"failed_count":0,"failures":[]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(test.result)
			require.NoError(t, err)
			require.JSONEq(t, test.want, string(got))
		})
	}
}

// A tool that stores what was done has to read it back as it was.
func TestTheLettersJSONIsReadBack(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b", "c")
	reapertest.Exec(t, pool, `update job_queue set state = 'ready' where job_kind = 'b'`)
	page, err := deadletter.ListWithJobs(t.Context(), pool, deadletter.Store{}, deadletter.Filter{}, 2)
	require.NoError(t, err)
	requireSame(t, *page)
	requireSame(t, *redriveAll(t, pool, deadletter.Filter{JobIDs: ids[:2]}))
	purged, err := deadletter.Purge(t.Context(), pool, deadletter.Store{}, 0, deadletter.PurgeConfig{Unredriven: true})
	require.NoError(t, err)
	requireSame(t, *purged)
}

func requireSame[T any](t *testing.T, result T) {
	t.Helper()
	text, err := json.Marshal(result)
	require.NoError(t, err)
	var back T
	require.NoError(t, json.Unmarshal(text, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}
