-- Inserts an action, unless another action has its identity: then no row is returned.
-- $1 to $37: the columns of the definition; $38 uuid: id; $39 int: owner; $40 boolean: duplicate; $41 timestamptz: now;
-- $42 boolean: enabled; $43 timestamptz: next run; $44 timestamptz: due at; $45 text: reason of a pause;
-- $46 jsonb: context; $47 int: version of the context
WITH definition AS (
    INSERT INTO recur_internal.definitions
           ({{definitions except id, owner_id, duplicate, created_at, updated_at}},
            id, owner_id, duplicate, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
            $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37,
            $38, $39, $40, $41, $41)
        ON CONFLICT DO NOTHING
    RETURNING id
), timer AS (
    INSERT INTO recur_internal.timers (action_id, enabled, next_run_at, due_at, paused_reason, run_count, error_count)
    SELECT d.id, $42, $43, $44, $45, 0, 0 FROM definition AS d
), progress AS (
    INSERT INTO recur_internal.progress
           (action_id, context, context_version, completed_count, failed_count, failed_in_a_row)
    SELECT d.id, $46, $47, 0, 0, 0 FROM definition AS d
)
SELECT d.id FROM definition AS d
