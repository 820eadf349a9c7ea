UPDATE jobs SET state = 'running', taken_at = now()
WHERE job_id = (SELECT job_id FROM jobs WHERE state = 'ready' ORDER BY job_id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING job_id, payload;
