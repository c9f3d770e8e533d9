-- What the reap job needs, besides the queue. It may run again.

-- There is one reap job at a time, whoever adds another, and however it crashed.
create unique index if not exists job_queue_one_reap_job_idx
    on job_queue (job_kind)
    where job_kind = 'queue.lease.reap'
      and state in ('ready', 'retry_waiting', 'leased');
