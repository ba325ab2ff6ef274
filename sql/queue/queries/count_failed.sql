-- Counts dispatches that have failed for good in the progress of their actions, and returns what decides whether a
-- contact is notified. Rows are locked in the order of their actions. {recipient} is recipient_columns.sql of the slice
-- alerts.
-- $1 uuid[]: actions, one for each dispatch; $2 uuid[]: dispatches; $3 text[]: why each failed
WITH counts AS (
    SELECT u.action_id, count(*)::int AS number,
           (array_agg(u.dispatch_id ORDER BY u.place DESC))[1] AS dispatch_id,
           (array_agg(u.reason ORDER BY u.place DESC))[1] AS reason
      FROM unnest($1, $2, $3) WITH ORDINALITY AS u (action_id, dispatch_id, reason, place)
     GROUP BY u.action_id
), locked AS (
    SELECT p.action_id, c.number, c.dispatch_id, c.reason
      FROM recur_internal.progress AS p
      JOIN counts AS c ON c.action_id = p.action_id
     ORDER BY p.action_id
       FOR UPDATE OF p
)
UPDATE recur_internal.progress AS p
   SET failed_count = p.failed_count + k.number,
       failed_in_a_row = p.failed_in_a_row + k.number,
       failing_since = coalesce(p.failing_since, recur.clock()),
       last_run_error_at = recur.clock(),
       last_run_error = left(k.reason, 500)
  FROM locked AS k
  JOIN recur_internal.definitions AS d ON d.id = k.action_id
 WHERE p.action_id = k.action_id
RETURNING {{recipient}}, p.failed_in_a_row, k.number, p.failing_since, k.dispatch_id, p.last_run_error
