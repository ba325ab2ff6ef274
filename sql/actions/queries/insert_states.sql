-- Inserts timers and progress of actions whose definitions were inserted.
-- $1 uuid[]: actions; $2 boolean[]: enabled; $3 timestamptz[]: next runs; $4 timestamptz[]: due at; $5 text[]: reasons
-- of a pause; $6 jsonb[]: contexts; $7 int[]: versions of the contexts; $8 int[]: the numbers of completed runs after
-- which they end
WITH timer AS (
    INSERT INTO recur_internal.timers (action_id, enabled, next_run_at, due_at, paused_reason, run_count, error_count)
    SELECT u.id, u.enabled, u.next_run_at, u.due_at, u.paused_reason, 0, 0
      FROM unnest($1, $2, $3, $4, $5) AS u (id, enabled, next_run_at, due_at, paused_reason)
)
INSERT INTO recur_internal.progress
       (action_id, context, context_version, max_completed, completed_count, failed_count, failed_in_a_row,
        interactive_count)
SELECT u.id, u.context, u.context_version, u.max_completed, 0, 0, 0, 0
  FROM unnest($1, $6, $7, $8) AS u (id, context, context_version, max_completed)
