-- Removes dispatches that were created ahead, and returns the last occurrence that was dispatched without them.
-- $1 uuid: action; $2 uuid[]: dispatches, which the caller has locked
WITH withdrawn AS (
    DELETE FROM recur_internal.live_dispatches AS l WHERE l.id = ANY ($2)
)
SELECT max(r.scheduled_at)
  FROM (SELECT l.scheduled_at FROM recur_internal.live_dispatches AS l
         WHERE l.action_id = $1 AND l.trigger = 'schedule' AND l.id <> ALL ($2)
         UNION ALL
        (SELECT f.scheduled_at FROM recur_internal.finished_dispatches AS f
          WHERE f.action_id = $1 AND f.trigger = 'schedule'
          ORDER BY f.scheduled_at DESC LIMIT 1)) AS r
