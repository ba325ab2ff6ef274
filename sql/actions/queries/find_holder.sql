-- The action that has an identity. {subject} compares the subject with $5, which an index can do only where NULL has a
-- condition of its own; {lock} is FOR SHARE where the action must neither be deleted nor renamed before the caller
-- commits.
-- $1 text: name; $2 text: namespace; $3 text: tenant; $4 int: owner; $5 text: subject
SELECT d.id FROM recur_internal.definitions AS d
 WHERE d.name = $1 AND d.namespace = $2 AND d.tenant = $3 AND d.owner_id = $4 AND {{subject}} AND NOT d.duplicate
   {{lock}}
