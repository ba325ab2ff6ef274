-- A context that an action has had. The first one is stored in progress only, until it is replaced.
-- $1 uuid: action; $2 int: version
SELECT c.context FROM recur_internal.contexts AS c WHERE c.action_id = $1 AND c.version = $2
 UNION ALL
SELECT p.context FROM recur_internal.progress AS p
 WHERE p.action_id = $1 AND p.context_version = $2 AND p.context_version > 0
 LIMIT 1
