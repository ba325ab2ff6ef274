-- Which of these actions have unfinished dispatches, and in which states: pending, running, stale. Dispatches ahead of
-- their time do not count. One that has failed and waits for its retry is stale from an hour after its occurrence on,
-- which is longer than the longest pause by default: otherwise retries could silence an action for good. A backlog is
-- not read to its end: a few dispatches answer for all.
-- $1 uuid[]: actions; $2 timestamptz: now
SELECT u.action_id, bool_or(l.status = 'pending' AND NOT l.is_stale), bool_or(l.status = 'running'),
       bool_or(l.is_stale)
  FROM unnest($1) AS u (action_id),
       LATERAL (SELECT f.status, f.status = 'pending' AND f.attempt > f.releases
                                 AND f.scheduled_at <= $2 - interval '1 hour' AS is_stale
                  FROM recur_internal.live_dispatches AS f
                 WHERE f.action_id = u.action_id AND f.scheduled_at <= $2
                 LIMIT 1000) AS l
 GROUP BY u.action_id
