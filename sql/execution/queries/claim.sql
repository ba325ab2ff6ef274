-- Takes the next dispatch of an owner that the database itself runs. The lease has no end: it is over when the process
-- that has it is gone. Priorities are visited from the highest down, because not all of a priority may be available.
-- Whether the owner is armed is seen in the same snapshot as the rows: a statement that inserts rows by hand disarms
-- it.
-- {chosen} selects the dispatch: next_of_owner.sql, or one_of_owner.sql; {shown} is shown_to_handler.sql.
-- $1 timestamptz: now; $2 text: consumer; $3 int: owner; $4 oid: role; $5 uuid: for one_of_owner.sql, the dispatch
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
        {{chosen}}))
       AND (SELECT a.role FROM recur_internal.armed_owners AS a WHERE a.owner_id = $3) = $4
    RETURNING l.*
)
SELECT c.id, c.attempt, c.provider, c.action_type, c.payload, c.context,
       coalesce(c.name, (SELECT d.name FROM recur_internal.definitions AS d WHERE d.id = c.action_id)),
       CASE WHEN c.provider <> 'sql' THEN
       {{shown}} END
  FROM claimed AS c
