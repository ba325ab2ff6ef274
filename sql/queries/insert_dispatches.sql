-- One dispatch for each occurrence; the template is copied inside the server. An occurrence that already has its
-- dispatch keeps it.
-- $1 uuid[]: dispatch ids; $2 uuid[]: actions; $3 timestamptz[]: occurrences
INSERT INTO recur.dispatches
       (id, action_id, scheduled_at, trigger, namespace, tenant, owner, provider, action_type,
        payload, metadata, max_attempts, available_at)
SELECT u.id, d.id, u.scheduled_at, 'schedule', d.namespace, d.tenant, d.owner, d.provider, d.action_type,
       d.payload,
       d.metadata || jsonb_build_object('_recurring_dispatch', 'true', '_recurring_id', d.id::text),
       d.max_attempts, least(u.scheduled_at, now())
  FROM unnest($1, $2, $3) AS u (id, action_id, scheduled_at)
  JOIN recur.definitions AS d ON d.id = u.action_id
    ON CONFLICT (id) DO NOTHING
RETURNING id, action_id, scheduled_at, namespace, tenant, provider, action_type
