-- Locks the dispatches of reports that are accepted, and reads what their outcome depends on. Of two reports on one
-- dispatch the first counts.
-- $1 uuid[]: dispatches; $2 int[]: attempts; $3 int[]: owners that the caller sees, NULL for all
WITH locked AS (
    SELECT l.id, l.action_id, l.status, l.attempt, l.releases, l.max_attempts, l.lease_expires_at, l.cancel_requested,
           l.retry_backoff
      FROM recur_internal.live_dispatches AS l
     WHERE l.id = ANY ($1) AND ($3 IS NULL OR l.owner_id = ANY ($3))
     ORDER BY l.id
       FOR UPDATE
)
SELECT DISTINCT ON (k.id) u.number, k.id, k.attempt, k.releases, k.max_attempts, k.cancel_requested,
       coalesce(k.retry_backoff, (SELECT d.retry_backoff FROM recur_internal.definitions AS d
                                   WHERE d.id = k.action_id))::text
  FROM unnest($1, $2) WITH ORDINALITY AS u (id, attempt, number)
  JOIN locked AS k ON k.id = u.id AND k.attempt = u.attempt
 WHERE k.status = 'running' AND k.lease_expires_at > recur.clock()
 ORDER BY k.id, u.number
