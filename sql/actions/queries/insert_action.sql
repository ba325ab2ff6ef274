-- Inserts an action, unless another action has its identity: then no row is returned.
-- $1 uuid: id; $2 int: owner; $3 boolean: duplicate; $4 timestamptz: now; $5 boolean: enabled; $6 timestamptz: next
-- run; $7 timestamptz: due at; $8 text: reason of a pause; $9 jsonb: context; $10 int: version of the context;
-- $11 int: the number of completed runs after which it ends; $12 text: journey; $13 text: its version; $14 text: start
-- state; from $15 on: the columns of the definition. {own} are those that a definition has besides.
WITH definition AS (
    INSERT INTO recur_internal.definitions
           (id, owner_id, duplicate, created_at, updated_at, journey, journey_version, start_state,
            {{definitions except {{own}}}})
    VALUES ($1, $2, $3, $4, $4, $12, $13, $14, {{$15 definitions except {{own}}}})
        ON CONFLICT DO NOTHING
    RETURNING id
), timer AS (
    INSERT INTO recur_internal.timers (action_id, enabled, next_run_at, due_at, paused_reason, run_count, error_count)
    SELECT d.id, $5, $6, $7, $8, 0, 0 FROM definition AS d
), progress AS (
    INSERT INTO recur_internal.progress
           (action_id, context, context_version, max_completed, completed_count, failed_count, failed_in_a_row,
            interactive_count)
    SELECT d.id, $9, $10, $11, 0, 0, 0, 0 FROM definition AS d
)
SELECT d.id FROM definition AS d
