-- Notes backfilled occurrences, which count as runs. An action that has had all of its runs by that ends; returns
-- whether. With dispatches ahead, or when all are dispatched already, the dispatcher sees when it ends.
-- $1 uuid: action; $2 timestamptz: the latest of the occurrences; $3 bigint: how many
UPDATE recur_internal.timers AS t
   SET last_run_at  = greatest(t.last_run_at, $2),
       ran_at       = CASE WHEN t.next_ahead IS NOT NULL THEN greatest(t.ran_at, $2) END,
       run_count    = t.run_count + $3,
       enabled      = t.enabled AND NOT e.ends,
       ended_reason = CASE WHEN e.ends THEN '{{reason}}' ELSE t.ended_reason END,
       next_run_at  = CASE WHEN NOT e.ends THEN t.next_run_at END,
       due_at       = CASE WHEN NOT e.ends THEN t.due_at END
  FROM (SELECT o.action_id,
               o.enabled AND o.next_ahead IS NULL AND o.next_run_at IS NOT NULL AND d.count_runs = 'dispatched'
               AND coalesce(o.run_count + $3 >= d.max_runs, false) AS ends
          FROM recur_internal.timers AS o
          JOIN recur_internal.definitions AS d ON d.id = o.action_id
         WHERE o.action_id = $1) AS e
 WHERE t.action_id = e.action_id
RETURNING e.ends
