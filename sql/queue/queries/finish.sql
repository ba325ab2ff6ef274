-- Moves dispatches to the history. The one statement behind complete, fail, their batch forms, cancellation and expired
-- leases.
--
-- {accepted} selects the dispatches that are moved: those that a consumer may report on, or all that the caller has
-- locked. {reports} unnests the arrays. Many reports are sorted, so that two batches lock in the same order; of two
-- reports on one attempt the first counts. One report needs no sort, which saves 8 µs. The condition is "not pending"
-- instead of "running", because the planner estimates the index of running dispatches to be cheaper than the primary
-- key.
-- {kept_errors} and {subject} as in requeue.sql.
-- $1 uuid[]: dispatches; $2 int[]: attempts; $3 jsonb[]: results; $4 text[]: reasons; $5 text: completed, failed or
-- cancelled; $6 smallint: history partition; $7 int[]: owners that the caller sees, NULL for all
WITH reports AS (
    {{reports}}
), moved AS (
    DELETE FROM recur_internal.live_dispatches AS l
     USING reports AS u
     WHERE l.id = u.id AND {{accepted}}
    RETURNING u.number, u.result, u.reason, {{live_dispatches l}}
), kept AS (
    INSERT INTO recur_internal.finished_dispatches
           ({{live_dispatches except status, lease_expires_at, error, errors}},
            status, error, errors, finished_at, result, partition)
    SELECT {{live_dispatches m except status, lease_expires_at, error, errors}}, $5, coalesce(m.reason, m.error),
           CASE WHEN $5 = 'failed'
                THEN {{kept_errors}}
                     || jsonb_build_object('attempt', m.attempt, 'at', recur.clock(), 'reason', m.reason)
                ELSE m.errors END,
           recur.clock(), m.result, $6
      FROM moved AS m
     WHERE m.action_id IS NULL
        OR coalesce((SELECT d.keep_history = 'all' OR (d.keep_history = 'failures' AND $5 <> 'completed')
                       FROM recur_internal.definitions AS d WHERE d.id = m.action_id), true)
)
SELECT m.number, m.id, m.attempt, m.available_at, m.cancel_requested, m.action_id, m.context_version, m.owner_id,
       m.claimed_by, m.record_events,
       {{subject}},
       m.trigger = 'schedule' AND m.scheduled_at > m.created_at + interval '1 minute', m.started_at
  FROM moved AS m
