-- Locks an unfinished dispatch.
-- $1 uuid: dispatch; $2 int[]: owners that the caller sees, NULL for all
SELECT l.status
  FROM recur_internal.live_dispatches AS l
 WHERE l.id = $1 AND ($2 IS NULL OR l.owner_id = ANY ($2))
   FOR UPDATE
