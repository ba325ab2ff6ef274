-- Takes the next dispatch of an owner that the database itself runs. The lease has no end: it is over when the process
-- that has it is gone. Priorities are visited from the highest down, because not all of a priority may be available.
-- Whether the owner is armed is seen in the same snapshot as the rows: a statement that inserts rows by hand disarms
-- it.
-- $1 timestamptz: now; $2 text: consumer; $3 int: owner; $4 oid: role
WITH RECURSIVE priorities AS (
    (SELECT p.priority FROM recur_internal.live_dispatches AS p
      WHERE p.in_database AND p.status <> 'running' AND p.owner_id = $3
      ORDER BY p.priority DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT p.priority FROM recur_internal.live_dispatches AS p
             WHERE p.in_database AND p.status <> 'running' AND p.owner_id = $3 AND p.priority < h.priority
             ORDER BY p.priority DESC LIMIT 1)
      FROM priorities AS h
     WHERE h.priority IS NOT NULL
), claimed AS (
    UPDATE recur_internal.live_dispatches AS l
       SET status = 'running', attempt = l.attempt + 1, claimed_by = $2, started_at = $1, cancel_requested = false,
           lease_expires_at = 'infinity',
           (context, context_version) = (SELECT p.context, p.context_version FROM recur_internal.progress AS p
                                          WHERE p.action_id = l.action_id)
     WHERE l.id = ANY (ARRAY(
        SELECT c.id
          FROM priorities AS h
         CROSS JOIN LATERAL (
            SELECT p.id
              FROM recur_internal.live_dispatches AS p
             WHERE p.in_database AND p.status <> 'running' AND p.owner_id = $3 AND p.priority = h.priority
               AND p.available_at <= $1 AND p.primary_agent IS NULL
               AND (p.lock_group IS NULL OR recur_internal.group_is_free(p.lock_group, p.owner_id, p.id, $1))
             ORDER BY p.available_at, p.created_at
             LIMIT 1
               FOR UPDATE SKIP LOCKED) AS c
         LIMIT 1))
       AND (SELECT a.role FROM recur_internal.armed_owners AS a WHERE a.owner_id = $3) = $4
    RETURNING l.*
)
SELECT c.id, c.attempt, c.provider, c.action_type, c.payload, c.context,
       coalesce(c.name, (SELECT d.name FROM recur_internal.definitions AS d WHERE d.id = c.action_id)),
       CASE WHEN c.provider <> 'sql' THEN
       jsonb_build_object('id', c.id, 'attempt', c.attempt, 'max_attempts', c.max_attempts, 'trigger', c.trigger,
                          'scheduled_at', c.scheduled_at, 'action_id', c.action_id, 'namespace', c.namespace,
                          'tenant', c.tenant, 'subject', c.subject, 'provider', c.provider,
                          'action_type', c.action_type, 'dedup_key', c.dedup_key,
                          'metadata', coalesce(c.metadata, '{}'), 'labels', coalesce(c.labels, '{}'),
                          'raw_payload', encode(c.raw_payload, 'base64')) END
  FROM claimed AS c
