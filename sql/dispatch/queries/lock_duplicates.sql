-- Locks dispatches that are still pending. {unless_locked} says what to do with those that another transaction has.
-- $1 uuid[]: dispatches
SELECT l.id FROM recur_internal.live_dispatches AS l
 WHERE l.id = ANY ($1) AND l.status = 'pending'
 ORDER BY l.id
   FOR UPDATE {{unless_locked}}
