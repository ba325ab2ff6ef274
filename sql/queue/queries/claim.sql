-- Takes pending dispatches of one priority and returns them as recur.dispatches shows them.
--
-- Within a priority the index is in the order of time: the scan ends at the first dispatch that is not available yet.
-- {pending} selects the index of one owner, of one owner and provider, or of all, because a kept plan uses one index.
-- Whether a higher priority waits is asked with ORDER BY: for EXISTS the planner may read another index from end to
-- end. A restored row may have a lease that is longer than {longest}, the longest that is allowed.
-- $1 timestamptz: now; $2 int: priority; $3, $4 timestamptz: available_at and created_at to begin at; $5 boolean: only
-- if no higher priority waits; $6 text[]: providers, or NULL; $7 text: the provider, if there is only one; $8 text[]:
-- action types, or NULL; $9 text[]: namespaces, or NULL; $10 text[]: tenants, or NULL; $11 int[]: owners that the
-- caller sees, NULL for all; $12 int: at most this many; $13 text: consumer; $14 interval: lease, or NULL; $15 int: the
-- owner, if there is only one
WITH claimed AS (
    UPDATE recur_internal.live_dispatches AS l
       SET status = 'running', attempt = l.attempt + 1, claimed_by = $13, started_at = $1, cancel_requested = false,
           lease_expires_at = clock_timestamp() + least(coalesce($14, l.lease), interval '{{longest}}'),
           (context, context_version) = (SELECT p.context, p.context_version FROM recur_internal.progress AS p
                                          WHERE p.action_id = l.action_id)
     WHERE l.id = ANY (ARRAY(
        SELECT p.id
          FROM recur_internal.live_dispatches AS p
         WHERE {{pending}} AND (p.available_at, p.created_at) >= ($3, $4) AND p.available_at <= $1 AND p.priority = $2
           AND (NOT $5 OR (SELECT p.priority FROM recur_internal.live_dispatches AS p
                            WHERE {{pending}} AND p.priority > $2 ORDER BY p.priority DESC LIMIT 1) IS NULL)
           AND ($6 IS NULL OR p.provider = ANY ($6))
           AND ($8 IS NULL OR p.action_type = ANY ($8))
           AND ($9 IS NULL OR p.namespace = ANY ($9))
           AND ($10 IS NULL OR p.tenant = ANY ($10))
           AND ($11 IS NULL OR p.owner_id = ANY ($11))
           AND (p.lock_group IS NULL OR recur_internal.group_is_free(p.lock_group, p.owner_id, p.id, $1))
         ORDER BY p.available_at, p.created_at
         LIMIT $12
           FOR UPDATE SKIP LOCKED))
    RETURNING l.*
)
SELECT {{public live_dispatches c}}, NULL::timestamptz, NULL::jsonb
  FROM claimed AS c
 ORDER BY c.available_at, c.created_at, c.id
