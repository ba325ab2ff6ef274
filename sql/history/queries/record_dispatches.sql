-- Events of dispatches, all of one kind. They are announced unless the action is muted, and with mute_interval one in
-- that time; many of them are announced as a count. A row of progress that another transaction has locked is skipped.
-- $1 text: kind; $2 uuid[]: actions, NULL for enqueued dispatches; $3 uuid[]: dispatches; $4 int[]: owners; $5 text[]:
-- details, as JSON; $6 text: actor; $7 text: role that logged in, if another; $8 smallint: history partition;
-- $9 boolean: the NOTIFY queue has room; $10 int: announced one by one up to this number
WITH recorded AS (
    INSERT INTO recur_internal.events (kind, action_id, dispatch_id, owner_id, actor, login, detail, partition)
    SELECT $1, u.action_id, u.dispatch_id, u.owner_id, $6, $7, u.detail::jsonb, $8
      FROM unnest($2, $3, $4, $5) AS u (action_id, dispatch_id, owner_id, detail)
    RETURNING id, action_id, dispatch_id
), audible AS (
    SELECT r.id, r.action_id, r.dispatch_id, d.mute_interval IS NOT NULL AS is_limited
      FROM recorded AS r
      LEFT JOIN recur_internal.definitions AS d ON d.id = r.action_id
      LEFT JOIN recur_internal.progress AS p ON p.action_id = d.id
     WHERE $9 AND coalesce(NOT d.mute, true)
       AND (d.mute_interval IS NULL OR p.announced_at IS NULL
            OR p.announced_at <= recur.clock() - d.mute_interval)
), noted AS (
    UPDATE recur_internal.progress AS p
       SET announced_at = recur.clock()
     WHERE p.action_id IN (SELECT l.action_id FROM recur_internal.progress AS l
                            WHERE l.action_id IN (SELECT a.action_id FROM audible AS a WHERE a.is_limited)
                              FOR UPDATE SKIP LOCKED)
), heard AS (
    SELECT a.* FROM audible AS a
     WHERE NOT a.is_limited OR a.id = (SELECT min(o.id) FROM audible AS o WHERE o.action_id = a.action_id)
), messages AS (
    SELECT json_build_object('id', h.id, 'kind', $1, 'action_id', h.action_id, 'dispatch_id', h.dispatch_id) AS message
      FROM heard AS h
     WHERE (SELECT count(*) FROM heard) <= $10
     UNION ALL
    SELECT json_build_object('kind', $1, 'count', count(*)) FROM heard HAVING count(*) > $10
)
SELECT pg_notify('recur_events', m.message::text) FROM messages AS m
