-- What the dispatcher has to tell of actions. All of it is recorded; what is announced depends on mute and mute_interval.
-- A row of progress that a consumer has locked is not waited for: the dispatcher waits for nobody.
-- $1 uuid[]: actions; $2 text[]: kinds; $3 text[]: details, as JSON
WITH recorded AS (
    INSERT INTO recur.events (kind, action_id, owner, detail)
    SELECT u.kind, u.action_id, d.owner, u.detail::jsonb
      FROM unnest($1, $2, $3) AS u (action_id, kind, detail)
      JOIN recur.definitions AS d ON d.id = u.action_id
    RETURNING id, kind, action_id, actor
), told AS (
    SELECT d.id, d.mute_interval IS NOT NULL AS rarely
      FROM recur.definitions AS d
      JOIN recur.progress AS p ON p.action_id = d.id
     WHERE d.id = ANY ($1) AND NOT d.mute
       AND (d.mute_interval IS NULL OR p.last_notified_at IS NULL OR p.last_notified_at <= now() - d.mute_interval)
), noted AS (
    UPDATE recur.progress AS p
       SET last_notified_at = now()
     WHERE p.action_id IN (SELECT l.action_id FROM recur.progress AS l
                            WHERE l.action_id IN (SELECT t.id FROM told AS t WHERE t.rarely)
                              FOR UPDATE SKIP LOCKED)
)
SELECT pg_notify('recur_events', jsonb_build_object(
           'id', r.id, 'kind', r.kind, 'action_id', r.action_id, 'actor', r.actor)::text)
  FROM recorded AS r
  JOIN told AS t ON t.id = r.action_id
 WHERE NOT t.rarely OR r.id = (SELECT min(o.id) FROM recorded AS o WHERE o.action_id = r.action_id)
