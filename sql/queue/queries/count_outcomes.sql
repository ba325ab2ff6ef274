-- Counts finished dispatches in the progress of their actions. Rows are locked in the order of their actions.
-- $1 uuid[]: actions, one for each dispatch; $2 boolean: completed, not failed
WITH counts AS (
    SELECT u.action_id, count(*)::int AS number FROM unnest($1) AS u (action_id) GROUP BY u.action_id
), locked AS (
    SELECT p.action_id, c.number
      FROM recur_internal.progress AS p
      JOIN counts AS c ON c.action_id = p.action_id
     ORDER BY p.action_id
       FOR UPDATE OF p
)
UPDATE recur_internal.progress AS p
   SET completed_count = p.completed_count + CASE WHEN $2 THEN k.number ELSE 0 END,
       failed_count = p.failed_count + CASE WHEN $2 THEN 0 ELSE k.number END,
       failed_in_a_row = CASE WHEN $2 THEN 0 ELSE p.failed_in_a_row + k.number END
  FROM locked AS k
 WHERE p.action_id = k.action_id
RETURNING p.action_id, p.failed_in_a_row, k.number
