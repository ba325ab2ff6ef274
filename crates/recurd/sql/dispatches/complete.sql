-- $1 the id of a dispatch; $2 the attempt; $3 its result; $4 the context for the next run
SELECT row_to_json(s)::text AS body, s.id::text AS id
  FROM recur.complete($1::text::uuid, $2::text::int, $3::text::jsonb, $4::text::jsonb) AS s
