-- The same as list_actions.sql, for words that few actions have. The planner does not know how few, and might read
-- every action in order, expecting to fill a page early. So the words are looked up first. The parameters are the same.
WITH d AS MATERIALIZED (
    SELECT f.id, f.namespace, f.tenant, f.name, f.labels, f.subject, f.owner_id
      FROM recur_internal.definitions AS f
     WHERE to_tsvector('simple', f.name || ' ' || coalesce(f.description, '')) @@ recur_internal.words($7)
)
SELECT d.id
  FROM d
  JOIN recur_internal.timers AS t ON t.action_id = d.id
 WHERE ($1 IS NULL OR d.namespace = $1)
   AND ($2 IS NULL OR d.tenant = $2)
   AND ($3 IS NULL OR t.enabled = $3)
   AND ($4 IS NULL OR d.labels @> $4)
   AND ($5 IS NULL OR d.subject = $5)
   AND ($6 IS NULL OR d.owner_id = ANY ($6))
   AND ($13 IS NULL OR d.owner_id = ANY ($13))
   AND {{page}}
 LIMIT $8
