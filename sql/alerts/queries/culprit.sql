-- The dispatch that an alarm is about.
-- $1 uuid: action; $2 boolean: the one that has run longest, not the one that has waited longest
SELECT l.id
  FROM recur_internal.live_dispatches AS l
 WHERE l.action_id = $1
   AND CASE WHEN $2 THEN l.status = 'running' ELSE l.status = 'pending' AND l.attempt = 0 END
 ORDER BY CASE WHEN $2 THEN l.started_at ELSE l.available_at END
 LIMIT 1
