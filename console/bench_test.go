package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// fillLarge puts a million stale leases and 100,000 dead letters into the tables.
const fillLarge = `
insert into job_queue (job_kind, state, attempts, lease_owner, lease_until)
select 'kind-' || n % 20, 'leased', n % 5, 'worker-' || n % 200, now() - make_interval(secs => n / 100.0)
from generate_series(1, 1000000) n;
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, moved_at, job)
select gen_random_uuid(), 'kind-' || n % 20, 5, 5, 'lease_expired_reaped_at_max_attempts', 'reaper',
  now() - make_interval(mins => n), '{"payload": {}}'
from generate_series(1, 100000) n;
create index on job_dead_letter (moved_at, dead_letter_id);
insert into queue_config (key, value) values
  ('queue.job_substrate.enabled', 'true'), ('queue.lease.reaper_enabled', 'true'), ('queue.lease.reaper_dry_run_only', 'false')`

// BenchmarkPages says how long each page takes over a million stale leases and 100,000
// dead letters, when nothing of it was read within the last second. The letters have the
// index that the comment of deadletter.Store asks for. It fails where a page takes longer
// than the README promises.
func BenchmarkPages(b *testing.B) {
	pool := pgtest.New(b)
	_, err := pool.Exec(b.Context(), fillLarge)
	require.NoError(b, err)
	_, err = pool.Exec(b.Context(), "vacuum analyze")
	require.NoError(b, err)
	cfg := shop(pool)
	cfg.Fresh = time.Nanosecond
	h := handler(b, cfg)
	letter := "/shop/letter?id=" + aLetter(b, cfg)
	for _, page := range append([]string{"/shop/plan?limit=1000", "/shop/letters?kind=kind-7&older=3d", letter}, lookPages...) {
		name, _, _ := strings.Cut(strings.TrimPrefix(page, "/shop/"), "=")
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got := get(b, h, page)
				require.Equal(b, http.StatusOK, got.StatusCode)
			}
			require.Less(b, b.Elapsed()/time.Duration(b.N), 200*time.Millisecond, page)
		})
	}
	_, err = pool.Exec(b.Context(), "drop index job_dead_letter_moved_at_dead_letter_id_idx")
	require.NoError(b, err)
	b.Run("letters without the index", func(b *testing.B) {
		for b.Loop() {
			require.Equal(b, http.StatusOK, get(b, h, "/shop/letters").StatusCode)
		}
		require.Less(b, b.Elapsed()/time.Duration(b.N), time.Second)
	})
}
