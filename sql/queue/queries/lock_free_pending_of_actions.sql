-- Locks some pending dispatches of each action, and waits for no lock. The status is asked for as in
-- lock_pending_of_actions.sql.
-- $1 uuid[]: actions; $2 int: at most this many of each action; $3 timestamptz: now
SELECT l.id
  FROM unnest($1) AS u (action_id),
       LATERAL (SELECT p.id FROM recur_internal.live_dispatches AS p
                 WHERE p.action_id = u.action_id AND CASE p.status WHEN 'pending' THEN true END
                   AND p.scheduled_at <= $3
                 LIMIT $2
                   FOR UPDATE SKIP LOCKED) AS l
