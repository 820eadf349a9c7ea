DELETE FROM jobs
WHERE job_id = (SELECT job_id FROM jobs WHERE state = 'running' ORDER BY job_id LIMIT 1 FOR UPDATE SKIP LOCKED);
