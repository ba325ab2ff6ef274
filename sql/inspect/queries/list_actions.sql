-- The ids of one page of recur.list. {page} is page_by_name.sql or page_of_newest.sql: where the page begins, and the
-- order.
-- $1 namespace; $2 tenant; $3 enabled; $4 labels; $5 subject; $6 int[]: owners asked for; $7 words to search for; $8 at
-- most this many; $9, $10, $11, $12 namespace, tenant, name and id to go on after; $13 int[]: owners that the caller
-- sees (each NULL for all)
SELECT d.id
  FROM recur_internal.definitions AS d
  JOIN recur_internal.timers AS t ON t.action_id = d.id
 WHERE ($1 IS NULL OR d.namespace = $1)
   AND ($2 IS NULL OR d.tenant = $2)
   AND ($3 IS NULL OR t.enabled = $3)
   AND ($4 IS NULL OR d.labels @> $4)
   AND ($5 IS NULL OR d.subject = $5)
   AND ($6 IS NULL OR d.owner_id = ANY ($6))
   AND ($7 IS NULL OR to_tsvector('simple', d.name || ' ' || coalesce(d.description, '')) @@ recur_internal.words($7))
   AND ($13 IS NULL OR d.owner_id = ANY ($13))
   AND {{page}}
 LIMIT $8
