-- What the alarms of these actions depend on. Of an action with a large backlog not all dispatches are read.
-- A dispatch that was written late is available since then. {recipient} is recipient_columns.sql.
-- $1 uuid[]: actions; $2 int: read this many dispatches of each action at most
SELECT {{recipient}},
       (extract(epoch FROM d.late_after) * 1000000)::bigint, (extract(epoch FROM d.max_runtime) * 1000000)::bigint,
       (extract(epoch FROM d.max_silence) * 1000000)::bigint, t.enabled, t.next_run_at,
       greatest(p.completed_at, a.counts_from), l.unstarted_from, l.pending_from, l.running_from,
       a.late_since, a.overrunning_since, a.silent_since
  FROM recur_internal.alarms AS a
  JOIN recur_internal.definitions AS d ON d.id = a.action_id
  JOIN recur_internal.timers AS t ON t.action_id = a.action_id
  JOIN recur_internal.progress AS p ON p.action_id = a.action_id,
       LATERAL (SELECT min(greatest(o.available_at, o.created_at))
                         FILTER (WHERE o.status = 'pending' AND o.attempt = 0) AS unstarted_from,
                       min(o.available_at) FILTER (WHERE o.status = 'pending') AS pending_from,
                       min(o.started_at) FILTER (WHERE o.status = 'running') AS running_from
                  FROM (SELECT s.status, s.attempt, s.available_at, s.created_at, s.started_at
                          FROM recur_internal.live_dispatches AS s
                         WHERE s.action_id = a.action_id LIMIT $2) AS o) AS l
 WHERE a.action_id = ANY ($1)
