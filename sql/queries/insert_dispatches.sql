-- One dispatch for each occurrence; the template is copied inside the server. An occurrence that already has its
-- dispatch is refused by the primary key. (To ask first, with ON CONFLICT, takes another descent of the index and a tenth more WAL.)
-- $1 uuid[]: dispatch ids; $2 tid[]: where their definitions are: that was just read, and spares the way through the index;
-- $3 timestamptz[]: occurrences; $4 timestamptz[]: when each is available
INSERT INTO recur.live_dispatches
       (id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, metadata,
        dedup_key, primary_agent, fallback_agent, priority, lock_group, notify_channel, max_attempts, lease, available_at)
SELECT u.id, d.id, u.scheduled_at, 'schedule', d.namespace, d.tenant, d.owner, d.subject, d.provider, d.action_type, d.payload,
       d.metadata || jsonb_object(ARRAY['_recurring_dispatch', 'true', '_recurring_id', d.id::text]),
       recur._expanded_key(d.dedup_key, d.id, u.scheduled_at),
       d.primary_agent, d.fallback_agent, d.priority, d.lock_group, d.notify_channel, d.max_attempts, d.lease, u.available_at
  FROM unnest($1, $2, $3, $4) AS u (id, place, scheduled_at, available_at)
  JOIN recur.definitions AS d ON d.ctid = u.place
