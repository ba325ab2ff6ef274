-- $1 the id of an action; $2 changes; $3 how many occurrences
SELECT row_to_json(c)::text AS body
  FROM recur.compare($1::text::uuid, $2::text::jsonb, coalesce($3::text::int, 10)) AS c
