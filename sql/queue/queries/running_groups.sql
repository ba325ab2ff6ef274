-- All lock groups of which a dispatch is running.
SELECT l.lock_group, l.owner_id FROM recur_internal.live_dispatches AS l
 WHERE l.status = 'running' AND l.lock_group IS NOT NULL
