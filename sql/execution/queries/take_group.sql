-- Locks dispatches of an owner that one transaction runs together, if the next one is among those. They stay pending:
-- no other process claims what is locked until it is completed. All are of one priority, and in their order; what can't
-- share a transaction waits for the end of one group.
-- {groupable} is groupable.sql, {shown} is shown_to_handler.sql.
-- $1 timestamptz: now; $2 int: owner; $3 oid: role; $4 text[]: action types that share transactions; $5 bigint: how
-- many dispatches
WITH RECURSIVE priorities AS (
    (SELECT p.priority FROM recur_internal.live_dispatches AS p
      WHERE p.in_database AND p.status <> 'running' AND p.owner_id = $2
      ORDER BY p.priority DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT p.priority FROM recur_internal.live_dispatches AS p
             WHERE p.in_database AND p.status <> 'running' AND p.owner_id = $2 AND p.priority < h.priority
             ORDER BY p.priority DESC LIMIT 1)
      FROM priorities AS h
     WHERE h.priority IS NOT NULL
), following AS (
    SELECT n.priority, n.is_groupable
      FROM priorities AS h
     CROSS JOIN LATERAL (
        SELECT c.priority, {{groupable}} AS is_groupable
          FROM recur_internal.live_dispatches AS c
         WHERE c.in_database AND c.status <> 'running' AND c.owner_id = $2 AND c.priority = h.priority
           AND c.available_at <= $1 AND c.primary_agent IS NULL
           AND (c.lock_group IS NULL OR recur_internal.group_is_free(c.lock_group, c.owner_id, c.id, $1))
         ORDER BY c.available_at, c.created_at
         LIMIT 1) AS n
     LIMIT 1
)
SELECT c.id, c.ctid::text, c.attempt + 1, c.action_type, c.payload,
       coalesce(c.name, (SELECT d.name FROM recur_internal.definitions AS d WHERE d.id = c.action_id)),
       CASE WHEN c.action_type = ANY ($6) THEN
       {{shown}} END
  FROM recur_internal.live_dispatches AS c
 WHERE c.in_database AND c.status <> 'running' AND c.owner_id = $2
   AND c.priority = (SELECT f.priority FROM following AS f WHERE f.is_groupable)
   AND c.available_at <= $1 AND {{groupable}}
   AND (SELECT a.role FROM recur_internal.armed_owners AS a WHERE a.owner_id = $2) = $3
 ORDER BY c.available_at, c.created_at
 LIMIT $5
   FOR UPDATE SKIP LOCKED
