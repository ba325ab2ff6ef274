-- A page of actions, without what may be large.
-- $1 namespace; $2 tenant; $3 enabled; $4 labels; $5 subject; $6 owner; $7 words to search for; $8 the order;
-- $9 the last id of the page before; $10 at most this many
SELECT (to_jsonb(a) - ARRAY['payload', 'context', 'metadata'])::text AS body, a.id::text AS cursor
  FROM recur.list(namespace => $1::text, tenant => $2::text, enabled => $3::text::boolean,
                  labels => $4::text::jsonb, subject => $5::text, owner => $6::text, search => $7::text,
                  "order" => coalesce($8::text, 'name'), after => $9::text::uuid, "limit" => $10::text::int) AS a
