-- The running SQL actions of an owner.
-- $1 int: owner
SELECT d.id
  FROM recur_internal.definitions AS d JOIN recur_internal.timers AS t ON t.action_id = d.id
 WHERE d.owner_id = $1 AND d.provider = 'sql' AND t.enabled
 ORDER BY d.id
