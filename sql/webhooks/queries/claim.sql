-- Takes webhooks for endpoints that the caller has locked: a number for each, of the highest priorities, the oldest
-- first. {priorities} and {deliverable} as in waiting_endpoints.sql, {longest} as in claim.sql of the slice queue.
-- Webhooks whose lock group is taken are passed over, but not many of them: a claim must not read a whole backlog.
-- $1 timestamptz: now; $2 int[]: owners; $3 text[]: endpoints; $4 int[]: at most this many of each; $5 text: consumer;
-- $6 interval: lease, or NULL
UPDATE recur_internal.live_dispatches AS l
   SET status = 'running', attempt = l.attempt + 1, claimed_by = $5, started_at = $1, cancel_requested = false,
       lease_expires_at = recur.clock()
           + least(coalesce($6, l.lease, recur_internal.default_lease()), interval '{{longest}}'),
       (context, context_version) = (SELECT p.context, p.context_version FROM recur_internal.progress AS p
                                      WHERE p.action_id = l.action_id)
 WHERE l.id = ANY (ARRAY(
    SELECT t.id
      FROM unnest($2, $3, $4) AS w (owner_id, endpoint, number)
     CROSS JOIN LATERAL (
        {{priorities}}
        SELECT c.id
          FROM priorities AS h
         CROSS JOIN LATERAL (
            SELECT p.ctid AS version
              FROM recur_internal.live_dispatches AS p
             WHERE {{deliverable}} AND p.priority = h.priority AND p.available_at <= $1
             ORDER BY p.available_at, p.created_at
             LIMIT 100 + 10 * w.number) AS f
         CROSS JOIN LATERAL (
            SELECT p.id
              FROM recur_internal.live_dispatches AS p
             WHERE p.ctid = f.version AND {{deliverable}}
               AND (p.lock_group IS NULL OR recur_internal.group_is_free(p.lock_group, p.owner_id, p.id, $1))
               FOR UPDATE SKIP LOCKED) AS c
         LIMIT w.number) AS t))
RETURNING l.id, l.owner_id, l.endpoint
