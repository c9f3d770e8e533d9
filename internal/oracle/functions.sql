-- The reaper's two functions and the dead-letter mover in PL/pgSQL, row by row: the reference for
-- behaviour. On the same rows the Go library gives the same JSON and leaves the same tables.

CREATE FUNCTION fn_config(p_key text, p_default text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT value FROM queue_config WHERE key = p_key), p_default)
$$;

CREATE FUNCTION fn_job_move_to_dead_letter(p_job_id uuid, p_actor text, p_final_error text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_job job_queue%ROWTYPE;
    v_dead_letter_id uuid;
BEGIN
    SELECT * INTO v_job FROM job_queue WHERE job_id = p_job_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('refused', true, 'reason', 'job_not_found');
    END IF;

    INSERT INTO job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
    VALUES (v_job.job_id, v_job.job_kind, v_job.attempts, v_job.max_attempts, p_final_error, p_actor, to_jsonb(v_job))
    RETURNING dead_letter_id INTO v_dead_letter_id;

    UPDATE job_queue
       SET state = 'dead_letter', last_error = p_final_error, lease_owner = NULL, lease_until = NULL
     WHERE job_id = p_job_id;

    RETURN jsonb_build_object(
        'dead_letter_id', v_dead_letter_id, 'job_id', v_job.job_id, 'state', 'dead_letter',
        'refused', false, 'attempts', v_job.attempts, 'final_error', p_final_error);
END
$$;

CREATE FUNCTION fn_job_reap_stale_leases_dry_run(p_limit int) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'evaluated_at', now(),
        'stale_lease_count', (SELECT count(*) FROM job_queue
                               WHERE state = 'leased' AND lease_until IS NOT NULL AND lease_until < now()),
        'limit', p_limit,
        'mutation', false,
        'jobs', coalesce((
            SELECT jsonb_agg(jsonb_build_object(
                'job_id', s.job_id, 'job_kind', s.job_kind, 'lease_owner', s.lease_owner,
                'lease_until', s.lease_until, 'attempts', s.attempts, 'max_attempts', s.max_attempts,
                'overdue_seconds', floor(extract(epoch FROM now() - s.lease_until))::bigint,
                'would_action', CASE WHEN s.attempts + 1 >= s.max_attempts
                                     THEN 'move_to_dead_letter' ELSE 'reset_to_retry_waiting' END)
                ORDER BY s.lease_until, s.job_id)
            FROM (SELECT * FROM job_queue
                   WHERE state = 'leased' AND lease_until IS NOT NULL AND lease_until < now()
                   ORDER BY lease_until, job_id LIMIT p_limit) s), '[]'::jsonb))
$$;

CREATE FUNCTION fn_job_reap_stale_leases_apply(p_actor text, p_limit int) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_job          record;
    v_attempts     int;
    v_backoff_sec  bigint;
    v_scheduled_at timestamptz;
    v_base_sec     bigint;
    v_reset        int := 0;
    v_dead         int := 0;
    v_actions      jsonb[] := '{}'; -- an array, so that a batch costs what its rows cost, not their square
BEGIN
    IF p_actor IS NULL OR btrim(p_actor) = '' THEN
        RETURN jsonb_build_object('refused', true, 'reason', 'actor_required');
    END IF;
    IF NOT fn_config('queue.job_substrate.enabled', 'false')::boolean THEN
        RETURN jsonb_build_object('refused', true, 'reason', 'queue.job_substrate.enabled=false');
    END IF;
    IF NOT fn_config('queue.lease.reaper_enabled', 'false')::boolean THEN
        RETURN jsonb_build_object('refused', true, 'reason', 'queue.lease.reaper_enabled=false');
    END IF;
    IF fn_config('queue.lease.reaper_dry_run_only', 'true')::boolean THEN
        RETURN jsonb_build_object('refused', true, 'reason', 'queue.lease.reaper_dry_run_only=true');
    END IF;

    v_base_sec := fn_config('queue.retry.backoff_base_sec', '10')::bigint;

    FOR v_job IN
        SELECT job_id, attempts, max_attempts FROM job_queue
         WHERE state = 'leased' AND lease_until IS NOT NULL AND lease_until < now()
         ORDER BY lease_until, job_id LIMIT p_limit
           FOR UPDATE SKIP LOCKED
    LOOP
        v_attempts := v_job.attempts + 1;
        IF v_attempts >= v_job.max_attempts THEN
            UPDATE job_queue SET attempts = v_attempts WHERE job_id = v_job.job_id;
            v_actions := array_append(v_actions, jsonb_build_object(
                'action', 'moved_to_dead_letter', 'job_id', v_job.job_id, 'attempts', v_attempts,
                'dead_letter', fn_job_move_to_dead_letter(
                    v_job.job_id, p_actor, 'lease_expired_reaped_at_max_attempts')));
            v_dead := v_dead + 1;
        ELSE
            v_backoff_sec := v_base_sec * (2 ^ least(v_attempts - 1, 10))::bigint;
            v_scheduled_at := now() + make_interval(secs => v_backoff_sec);
            UPDATE job_queue
               SET state = 'retry_waiting', attempts = v_attempts, last_error = 'lease_expired_reaped',
                   scheduled_at = v_scheduled_at, lease_owner = NULL, lease_until = NULL
             WHERE job_id = v_job.job_id;
            v_actions := array_append(v_actions, jsonb_build_object(
                'action', 'reset_to_retry_waiting', 'job_id', v_job.job_id, 'attempts', v_attempts,
                'backoff_sec', v_backoff_sec, 'scheduled_at', v_scheduled_at));
            v_reset := v_reset + 1;
        END IF;
    END LOOP;

    RETURN jsonb_build_object('actor', p_actor, 'refused', false, 'reset_count', v_reset,
                              'dead_letter_count', v_dead, 'actions', to_jsonb(v_actions));
END
$$;
