-- Counts completed dispatches in the progress of their actions, and returns which had failed before, and which have had
-- all of their runs. Rows are locked in the order of their actions.
-- $1 uuid[]: actions, one for each dispatch
WITH counts AS (
    SELECT u.action_id, count(*)::int AS number FROM unnest($1) AS u (action_id) GROUP BY u.action_id
), locked AS (
    SELECT p.action_id, c.number, p.failed_in_a_row, p.failing_since
      FROM recur_internal.progress AS p
      JOIN counts AS c ON c.action_id = p.action_id
     ORDER BY p.action_id
       FOR UPDATE OF p
)
UPDATE recur_internal.progress AS p
   SET completed_count = p.completed_count + k.number,
       failed_in_a_row = 0,
       failing_since = NULL,
       completed_at = CASE WHEN p.completed_at IS NOT NULL THEN recur.clock() END
  FROM locked AS k
 WHERE p.action_id = k.action_id
RETURNING p.action_id, k.failed_in_a_row, k.failing_since, coalesce(p.last_notified_at >= k.failing_since, false),
          CASE WHEN k.failed_in_a_row > 0 THEN p.last_run_error END,
          coalesce(p.completed_count >= p.max_completed, false)
