-- $1 the id of a dispatch
SELECT row_to_json(d)::text AS body, d.id::text AS id FROM recur.dispatches AS d WHERE d.id = $1::text::uuid
