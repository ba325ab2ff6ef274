-- How many actions with a horizon these owners have.
-- $1 int[]: owners
SELECT d.owner_id, count(*)
  FROM recur_internal.definitions AS d
 WHERE d.owner_id = ANY ($1) AND (d.horizon IS NOT NULL OR d.horizon_count IS NOT NULL)
 GROUP BY d.owner_id
