-- A dispatch of an action that was triggered by hand. {announced} is announced_columns.sql.
-- $1 uuid: dispatch id; $2 uuid: action; $3 timestamptz: now; $4 jsonb: payload instead of the action's, or NULL
INSERT INTO recur_internal.live_dispatches AS l
       (id, scheduled_at, trigger, available_at, payload, dedup_key,
        {{dispatch_templates except definition, payload, dedup_key}})
SELECT $1, $3, 'manual', $3, coalesce($4, t.payload), recur_internal.expanded_key(t.dedup_key, t.action_id, $3),
       {{dispatch_templates t except definition, payload, dedup_key}}
  FROM recur_internal.dispatch_templates AS t
 WHERE t.action_id = $2
RETURNING {{announced}}
