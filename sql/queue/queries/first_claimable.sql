-- The first dispatch of a priority that can be claimed: behind dead index entries, and behind dispatches that wait for
-- their lock group. {pending} as in claim.sql. Whether a group runs is not asked with EXISTS, for which the planner may
-- read all running dispatches.
-- $1 timestamptz: now; $2 int: priority; $3, $4 timestamptz: available_at and created_at to begin at; $5 text: the
-- provider, if there is only one; $6 text[]: providers; $7 text[]: action types; $8 text[]: namespaces; $9 text[]:
-- tenants; $10 int[]: owners (each NULL for all); $11 int: the owner, if there is only one
SELECT p.available_at, p.created_at
  FROM recur_internal.live_dispatches AS p
 WHERE {{pending}} AND p.priority = $2 AND (p.available_at, p.created_at) >= ($3, $4) AND p.available_at <= $1
   AND ($6 IS NULL OR p.provider = ANY ($6))
   AND ($7 IS NULL OR p.action_type = ANY ($7))
   AND ($8 IS NULL OR p.namespace = ANY ($8))
   AND ($9 IS NULL OR p.tenant = ANY ($9))
   AND ($10 IS NULL OR p.owner_id = ANY ($10))
   AND (p.lock_group IS NULL
        OR (SELECT r.id FROM recur_internal.live_dispatches AS r
             WHERE r.lock_group = p.lock_group AND r.owner_id = p.owner_id AND r.status = 'running') IS NULL)
 ORDER BY p.available_at, p.created_at
 LIMIT 1
