-- Which of these actions have unfinished dispatches, and in which states. Dispatches ahead of their time do not count.
-- $1 uuid[]: actions; $2 timestamptz: now
SELECT l.action_id, bool_or(l.status = 'pending'), bool_or(l.status = 'running')
  FROM recur_internal.live_dispatches AS l
 WHERE l.action_id = ANY ($1) AND l.scheduled_at <= $2
 GROUP BY l.action_id
