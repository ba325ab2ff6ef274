-- Whose webhook a dispatch is, and which endpoint it goes to.
-- $1 uuid: dispatch
SELECT l.owner_id, l.endpoint FROM recur_internal.live_dispatches AS l
 WHERE l.id = $1 AND l.provider = 'webhook' AND l.endpoint IS NOT NULL
UNION ALL
SELECT f.owner_id, f.endpoint FROM recur_internal.finished_dispatches AS f
 WHERE f.id = $1 AND f.provider = 'webhook' AND f.endpoint IS NOT NULL
 LIMIT 1
