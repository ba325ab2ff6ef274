-- $1 the id of an action; $2 why
SELECT row_to_json(s)::text AS body, s.id::text AS id FROM recur.pause($1::text::uuid, $2::text) AS s
