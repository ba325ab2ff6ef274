-- Raises if there is no such action, and never was.
-- $1 the id of an action
SELECT count(*) FROM recur.history($1::text::uuid, 1)
