-- $1 the id of an action
SELECT row_to_json(a)::text AS body, a.id::text AS id,
       (extract(epoch FROM a.updated_at) * 1000000)::bigint::text AS version
  FROM recur.get($1::text::uuid) AS a
