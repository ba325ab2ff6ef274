-- Asks a running dispatch, which the caller has locked, to stop.
-- $1 uuid: dispatch; $2 text: reason, or NULL
UPDATE recur_internal.live_dispatches AS l
   SET cancel_requested = true, updated_at = recur.clock(), error = coalesce($2, l.error)
 WHERE l.id = $1
RETURNING l.attempt, l.available_at
