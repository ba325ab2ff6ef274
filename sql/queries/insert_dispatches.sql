-- One dispatch for each occurrence; the template is copied inside the server. An occurrence that already has its
-- dispatch keeps it.
-- $1 uuid[]: dispatch ids; $2 uuid[]: actions; $3 timestamptz[]: occurrences
INSERT INTO recur.dispatches
       (id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, metadata,
        dedup_key, context, context_version, primary_agent, fallback_agent, priority, lock_group, max_attempts, available_at)
SELECT u.id, d.id, u.scheduled_at, 'schedule', d.namespace, d.tenant, d.owner, d.subject, d.provider, d.action_type, d.payload,
       d.metadata || jsonb_build_object('_recurring_dispatch', 'true', '_recurring_id', d.id::text),
       replace(replace(d.dedup_key, '{{recurring_id}}', d.id::text), '{{execution_time}}',
               to_char(u.scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
       p.context, p.context_version, d.primary_agent, d.fallback_agent, d.priority, d.lock_group, d.max_attempts,
       least(u.scheduled_at, now())
  FROM unnest($1, $2, $3) AS u (id, action_id, scheduled_at)
  JOIN recur.definitions AS d ON d.id = u.action_id
  JOIN recur.progress AS p ON p.action_id = u.action_id
    ON CONFLICT (id) DO NOTHING
RETURNING id, action_id, scheduled_at, namespace, tenant, provider, action_type
