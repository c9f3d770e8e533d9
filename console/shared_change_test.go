package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// Somebody closes a gate while a slow read is under way. That read saw the open gate, and
// must not be shown afterwards.
func TestAReadFromBeforeAChangeIsNotShownAfterIt(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	cfg := shop(pool)
	cfg.Fresh = time.Hour
	h := handler(t, cfg)
	lock, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), "lock table job_queue in access exclusive mode")
	require.NoError(t, err)
	var reader sync.WaitGroup
	reader.Go(func() { get(t, h, "/shop/overview") })
	require.Eventually(t, func() bool { return one[bool](t, pool, waiting) }, 5*time.Second, time.Millisecond)

	require.Equal(t, http.StatusSeeOther, post(t, h, "/shop/gates/close", url.Values{"key": {gates.ReaperEnabled}}).StatusCode)
	require.NoError(t, lock.Rollback(t.Context()))
	reader.Wait()
	require.Contains(t, get(t, h, "/shop/gates").body, "queue.lease.reaper_enabled=false")
}

// waiting is whether somebody waits for a lock on the queue.
const waiting = "select exists (select from pg_locks where relation = 'job_queue'::regclass and not granted)"

// A count that takes long, over a table that is locked or a large queue without an index,
// must not keep the leases from being shown, nor be tried each second.
func TestASlowCountOfLettersSpoilsNothing(t *testing.T) {
	t.Parallel()
	base := filled(t)
	pool, sent := traced(t, base)
	cfg := shop(pool)
	cfg.Fresh = time.Nanosecond
	h := handler(t, cfg)
	lock, err := base.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), "lock table job_dead_letter in access exclusive mode")
	require.NoError(t, err)

	for range 3 {
		got := get(t, h, "/shop/overview")
		require.Equal(t, http.StatusOK, got.StatusCode, got.body)
		require.Contains(t, got.body, "not counted")
		require.Contains(t, got.body, "send_invoice")
	}
	require.Equal(t, 1, sent.count("-- console.letters"))
	require.NoError(t, lock.Rollback(t.Context()))
}

// A reaper of some kinds must not be said to reap the others next.
func TestOnlyTheReapersKindsExpireNext(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	_, err := pool.Exec(t.Context(), `update job_queue set job_kind = 'other' where job_id in
		(select job_id from job_queue where lease_until > now() order by lease_until limit 5)`)
	require.NoError(t, err)
	for want, cfg := range map[int]reaper.Config{
		40: {}, 35: {ExceptKinds: []string{"other"}}, 5: {Kinds: []string{"other"}},
	} {
		c := shop(pool)
		c.Databases[0].Reaper = cfg
		require.Len(t, show(t, handler(t, c), "/shop/overview").NextExpiries, want)
	}
}

// The reader who began a read closes the tab while it runs. The others wait for the same
// read, and get it.
func TestAReaderWhoLeavesMeanwhileDoesNotSpoilTheRead(t *testing.T) {
	t.Parallel()
	base := filled(t)
	pool, sent := traced(t, base)
	cfg := shop(pool)
	cfg.Fresh = time.Hour
	h := handler(t, cfg)
	lock, err := base.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), "lock table job_queue in access exclusive mode")
	require.NoError(t, err)

	ctx, leave := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	readers.Go(func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/shop/overview", http.NoBody)
		h.ServeHTTP(discard{http.Header{}}, r)
	})
	require.Eventually(t, func() bool { return sent.count(readBegins) == 1 }, 5*time.Second, time.Millisecond)
	var got reply
	readers.Go(func() { got = get(t, h, "/shop/overview") })
	leave()
	require.NoError(t, lock.Rollback(t.Context()))
	readers.Wait()
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.NotContains(t, got.body, `role="alert"`)
	require.Equal(t, 1, sent.count(readBegins))
}
