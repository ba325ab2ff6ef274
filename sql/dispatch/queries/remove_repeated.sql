-- Removes new dispatches whose occurrence has a finished dispatch. Needed only for occurrences that are not later than
-- the last run: after a clock was set back, or a timer was changed by hand. Runs after the insert, not before it: a
-- report may have been moving the earlier dispatch from one table to the other.
-- $1 uuid[]: dispatch ids
DELETE FROM recur_internal.live_dispatches AS l
 WHERE l.id = ANY ($1) AND EXISTS (SELECT FROM recur_internal.finished_dispatches AS f WHERE f.id = l.id)
RETURNING l.id
