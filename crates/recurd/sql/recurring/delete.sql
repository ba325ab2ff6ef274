-- $1 the id of an action
SELECT row_to_json(s)::text AS body, s.id::text AS id FROM recur.delete($1::text::uuid) AS s
