-- The names of actions, for the server's log.
-- $1 uuid[]: actions
SELECT d.id, d.name
  FROM recur_internal.definitions AS d
 WHERE d.id = ANY ($1)
