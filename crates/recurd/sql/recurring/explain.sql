-- $1 the id of an action; $2 an instant
SELECT row_to_json(e)::text AS body, $1::text AS id
  FROM recur.explain($1::text::uuid, coalesce($2::text::timestamptz, recur.clock())) AS e
