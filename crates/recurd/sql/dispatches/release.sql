-- $1 the id of a dispatch; $2 the attempt; $3 after how long it may be claimed again
SELECT row_to_json(s)::text AS body, s.id::text AS id
  FROM recur.release($1::text::uuid, $2::text::int, delay => $3::text::interval) AS s
