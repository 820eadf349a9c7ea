SELECT count(*), now() - min(queued_at)
FROM (SELECT queued_at FROM jobs WHERE state = 'ready' ORDER BY job_id LIMIT 100) AS oldest;
