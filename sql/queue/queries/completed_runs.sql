-- The runs of actions whose max_runs counts completed runs: completed, and unfinished. One statement, so that a run
-- that is being completed is in one of both.
-- $1 uuid[]: actions; $2 bigint: count no more unfinished runs of an action
SELECT p.action_id, p.completed_count,
       (SELECT count(*) FROM (SELECT FROM recur_internal.live_dispatches AS l
                               WHERE l.action_id = p.action_id LIMIT $2) AS unfinished)
  FROM recur_internal.progress AS p
 WHERE p.action_id = ANY ($1)
