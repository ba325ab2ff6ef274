-- $1 the id of an action; $2 how many versions
SELECT row_to_json(c)::text AS body
  FROM recur.context_history($1::text::uuid, coalesce($2::text::int, 10)) AS c
