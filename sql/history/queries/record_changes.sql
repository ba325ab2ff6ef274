-- Events of what people did: recorded and announced, muted or not.
-- $1 text[]: kinds; $2 uuid[]: actions; $3 uuid[]: dispatches; $4 int[]: owners; $5 jsonb[]: details; $6 text:
-- actor; $7 text: role that logged in, if another; $8 smallint: history partition;
-- $9 boolean: the NOTIFY queue has room
WITH recorded AS (
    INSERT INTO recur_internal.events (kind, action_id, dispatch_id, owner_id, actor, login, detail, partition)
    SELECT u.kind, u.action_id, u.dispatch_id, u.owner_id, $6, $7, u.detail, $8
      FROM unnest($1, $2, $3, $4, $5) AS u (kind, action_id, dispatch_id, owner_id, detail)
    RETURNING id, kind, action_id
)
SELECT pg_notify('recur_events', json_build_object('id', r.id, 'kind', r.kind, 'action_id', r.action_id)::text)
  FROM recorded AS r
 WHERE $9
