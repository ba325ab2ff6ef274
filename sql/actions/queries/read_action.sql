-- The rows of an action whose timer the caller has locked. {lock} is FOR UPDATE OF p where the context is to be
-- changed.
-- $1 uuid: action
SELECT d, t, p, recur_internal.owner_name(d.owner_id)
  FROM recur_internal.definitions AS d
  JOIN recur_internal.timers AS t ON t.action_id = d.id
  JOIN recur_internal.progress AS p ON p.action_id = d.id
 WHERE d.id = $1
   {{lock}}
