-- Moves a dispatch that has failed or was cancelled from the history back to the queue. The dispatch gets one attempt
-- more if none is left. {announced} is announced_columns.sql.
-- $1 uuid: dispatch; $2 int[]: owners that the caller sees, NULL for all
WITH back AS (
    DELETE FROM recur_internal.finished_dispatches AS f
     WHERE f.id = $1 AND f.status IN ('failed', 'cancelled') AND ($2 IS NULL OR f.owner_id = ANY ($2))
    RETURNING f.*
)
INSERT INTO recur_internal.live_dispatches AS l
       ({{live_dispatches except
          context, context_version, status, max_attempts, available_at, lease_expires_at, cancel_requested,
          updated_at}},
        max_attempts, available_at, updated_at)
SELECT {{live_dispatches b except
         context, context_version, status, max_attempts, available_at, lease_expires_at, cancel_requested,
         updated_at}},
       greatest(b.max_attempts, b.attempt - b.releases + 1), recur.clock(), recur.clock()
  FROM back AS b
RETURNING {{announced}}, l.attempt, l.available_at
