-- $1 the id of an action; $2 a payload instead of its own; $3 its overlap policy this time
SELECT json_build_object('id', t.id)::text AS body, t.id::text AS id
  FROM recur.trigger($1::text::uuid, $2::text::jsonb, $3::text) AS t (id)
