-- The reference at work, in one transaction that is rolled back: psql -f proofs.sql, from this folder.
\set ON_ERROR_STOP on
BEGIN;
\i schema.sql
\i functions.sql
INSERT INTO job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until) VALUES
    ('phase2_proof_retryable', 'leased', 0, 5, 'worker-1', now() - interval '90 seconds'),
    ('phase2_proof_dlq_bound', 'leased', 4, 5, 'worker-2', now() - interval '60 seconds');
SELECT jsonb_pretty(fn_job_reap_stale_leases_dry_run(10));
SELECT fn_job_reap_stale_leases_apply('', 10);
SELECT fn_job_reap_stale_leases_apply('phase2_proof_reaper', 10);
INSERT INTO queue_config (key, value) VALUES ('queue.job_substrate.enabled', 'true'), ('queue.lease.reaper_dry_run_only', 'false');
SELECT fn_job_reap_stale_leases_apply('phase2_proof_reaper', 10);
INSERT INTO queue_config (key, value) VALUES ('queue.lease.reaper_enabled', 'true');
UPDATE queue_config SET value = 'true' WHERE key = 'queue.lease.reaper_dry_run_only';
SELECT fn_job_reap_stale_leases_apply('phase2_proof_reaper', 10);
UPDATE queue_config SET value = 'false' WHERE key = 'queue.lease.reaper_dry_run_only';
SELECT jsonb_pretty(fn_job_reap_stale_leases_apply('phase2_proof_reaper', 10));
SELECT job_kind, state, attempts, last_error, scheduled_at - now() AS backoff, lease_owner, lease_until FROM job_queue ORDER BY job_kind;
SELECT job_kind, attempts, final_error, moved_by FROM job_dead_letter;
ROLLBACK;
