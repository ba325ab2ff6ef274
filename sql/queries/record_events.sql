-- What the dispatcher has to tell of actions. All of it is recorded; what is announced depends on mute and mute_interval.
-- $1 uuid[]: actions; $2 text[]: kinds; $3 text[]: details, as JSON
WITH recorded AS (
    INSERT INTO recur.events (kind, action_id, owner, detail)
    SELECT u.kind, u.action_id, d.owner, u.detail::jsonb
      FROM unnest($1, $2, $3) AS u (action_id, kind, detail)
      JOIN recur.definitions AS d ON d.id = u.action_id
    RETURNING id, kind, action_id, actor
), told AS (
    UPDATE recur.progress AS p
       SET last_notified_at = now()
      FROM recur.definitions AS d
     WHERE p.action_id = ANY ($1) AND d.id = p.action_id AND NOT d.mute AND d.mute_interval IS NOT NULL
       AND (p.last_notified_at IS NULL OR p.last_notified_at <= now() - d.mute_interval)
    RETURNING p.action_id
)
SELECT pg_notify('recur_events', jsonb_build_object(
           'id', r.id, 'kind', r.kind, 'action_id', r.action_id, 'actor', r.actor)::text)
  FROM recorded AS r
  JOIN recur.definitions AS d ON d.id = r.action_id
 WHERE NOT d.mute
   AND (d.mute_interval IS NULL
        OR (r.action_id IN (SELECT t.action_id FROM told AS t)
            AND r.id = (SELECT min(o.id) FROM recorded AS o WHERE o.action_id = r.action_id)))
