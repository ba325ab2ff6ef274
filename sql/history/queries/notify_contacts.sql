-- Notifies the contact of each action, or else its owner, of a problem: at most once in a mute_interval. A row of
-- progress that a consumer has locked is skipped, at the price of one notification too many.
-- $1 uuid[]: actions; $2 text[]: problems; $3 text: actor; $4 smallint: history partition; $5 boolean: the
-- NOTIFY queue has room
WITH notified AS (
    SELECT d.id, d.owner_id, coalesce(d.contact, recur_internal.owner_name(d.owner_id)) AS contact, u.problem
      FROM unnest($1, $2) AS u (action_id, problem)
      JOIN recur_internal.definitions AS d ON d.id = u.action_id
      JOIN recur_internal.progress AS p ON p.action_id = d.id
     WHERE NOT d.mute
       AND (d.mute_interval IS NULL OR p.last_notified_at IS NULL
            OR p.last_notified_at <= clock_timestamp() - d.mute_interval)
), noted AS (
    UPDATE recur_internal.progress AS p
       SET last_notified_at = clock_timestamp()
     WHERE p.action_id IN (SELECT l.action_id FROM recur_internal.progress AS l
                            WHERE l.action_id IN (SELECT n.id FROM notified AS n)
                              FOR UPDATE SKIP LOCKED)
), recorded AS (
    INSERT INTO recur_internal.events (kind, action_id, owner_id, actor, detail, partition)
    SELECT '{{kind}}', n.id, n.owner_id, $3, jsonb_build_object('contact', n.contact, 'problem', n.problem), $4
      FROM notified AS n
    RETURNING id, kind, action_id
)
SELECT pg_notify('recur_events', json_build_object('id', r.id, 'kind', r.kind, 'action_id', r.action_id)::text)
  FROM recorded AS r
 WHERE $5
