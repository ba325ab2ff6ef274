-- Lets the dispatcher see whether actions end that have no more occurrences and wait for their last runs. A timer that
-- is locked elsewhere is looked at later anyway.
-- $1 uuid[]: actions; $2 timestamptz: now
UPDATE recur_internal.timers AS t SET due_at = $2
  FROM (SELECT o.action_id FROM recur_internal.timers AS o
         WHERE o.action_id = ANY ($1) AND o.enabled AND o.next_run_at IS NULL AND o.next_ahead IS NULL
           AND o.ran_at IS NOT NULL AND o.due_at > $2
         ORDER BY o.action_id
           FOR UPDATE SKIP LOCKED) AS waiting
 WHERE t.action_id = waiting.action_id
