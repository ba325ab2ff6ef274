-- The ids of one page of recur.list. It runs as the owner of the tables: under row-level security labels and words would
-- be looked at row by row, because an index may not be asked about rows that are hidden. So it hides them itself.
-- $1 namespace; $2 tenant; $3 enabled; $4 labels; $5 subject; $6 owner; $7 words to search for; $8 how many;
-- $9, $10, $11, $12 namespace, tenant, name and id to go on after; $13 text[]: the owners to see, NULL for all
SELECT d.id
  FROM recur.definitions AS d
  JOIN recur.timers AS t ON t.action_id = d.id
 WHERE ($1 IS NULL OR d.namespace = $1)
   AND ($2 IS NULL OR d.tenant = $2)
   AND ($3 IS NULL OR t.enabled = $3)
   AND ($4 IS NULL OR d.labels @> $4)
   AND ($5 IS NULL OR d.subject = $5)
   AND ($6 IS NULL OR d.owner = $6)
   AND ($7 IS NULL OR to_tsvector('simple', d.name || ' ' || coalesce(d.description, '')) @@ recur._words($7))
   AND ($12 IS NULL OR (d.namespace, d.tenant, d.name, d.id) > ($9, $10, $11, $12))
   AND ($13 IS NULL OR d.owner = ANY ($13))
 ORDER BY d.namespace, d.tenant, d.name, d.id
 LIMIT $8
