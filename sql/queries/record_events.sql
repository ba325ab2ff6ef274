-- What the dispatcher has to tell of actions.
-- $1 uuid[]: actions; $2 text[]: kinds; $3 text[]: details, as JSON
WITH recorded AS (
    INSERT INTO recur.events (kind, action_id, owner, detail)
    SELECT u.kind, u.action_id, d.owner, u.detail::jsonb
      FROM unnest($1, $2, $3) AS u (action_id, kind, detail)
      JOIN recur.definitions AS d ON d.id = u.action_id
    RETURNING id, kind, action_id, actor
)
SELECT pg_notify('recur_events', jsonb_build_object(
           'id', r.id, 'kind', r.kind, 'action_id', r.action_id, 'actor', r.actor)::text)
  FROM recorded AS r
