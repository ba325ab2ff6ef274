-- The first dispatch of a priority that can be claimed: behind dead index entries, and behind dispatches that wait for
-- their lock group. {waiting} is waiting.sql: what an owner has waiting. Whether a group runs is not asked with EXISTS,
-- for which the planner may read all running dispatches.
-- $1 timestamptz: now; $2 int: priority; $3, $4 timestamptz: available_at and created_at to begin at; $5 text[]:
-- providers, if there are several; $6 text: the provider, if there is only one; $7 text[]: action types; $8 text[]:
-- namespaces; $9 text[]: tenants (each NULL for all); $10 int[]: owners; $11 text[]: beginnings of other action types,
-- or NULL; $12 text: the agent, or NULL
SELECT p.available_at, p.created_at
  FROM unnest($10) AS o (owner_id) CROSS JOIN LATERAL ({{waiting}} LIMIT 1) AS p
 ORDER BY p.available_at, p.created_at
 LIMIT 1
