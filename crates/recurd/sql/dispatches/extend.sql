-- $1 the id of a dispatch; $2 the attempt; $3 the lease
SELECT row_to_json(s)::text AS body, s.id::text AS id
  FROM recur.extend($1::text::uuid, $2::text::int, $3::text::interval) AS s
