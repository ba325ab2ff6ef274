-- The state of a dispatch, for the error of a report that is not accepted.
-- $1 uuid: dispatch; $2 int[]: owners that the caller sees, NULL for all
SELECT l.status, l.attempt, l.lease_expires_at::text
  FROM recur_internal.live_dispatches AS l
 WHERE l.id = $1 AND ($2 IS NULL OR l.owner_id = ANY ($2))
UNION ALL
SELECT f.status, f.attempt, NULL
  FROM recur_internal.finished_dispatches AS f
 WHERE f.id = $1 AND ($2 IS NULL OR f.owner_id = ANY ($2))
 LIMIT 1
