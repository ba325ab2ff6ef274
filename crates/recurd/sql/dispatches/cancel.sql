-- $1 the id of a dispatch; $2 why
SELECT row_to_json(s)::text AS body, s.id::text AS id FROM recur.cancel($1::text::uuid, $2::text) AS s
