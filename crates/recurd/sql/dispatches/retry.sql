-- $1 the id of a dispatch
SELECT row_to_json(s)::text AS body, s.id::text AS id FROM recur.retry($1::text::uuid) AS s
