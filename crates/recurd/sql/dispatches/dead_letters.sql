-- A page of dispatches that have failed for good, the newest first, without what may be large.
-- $1 provider; $2 action_type; $3 namespace; $4 tenant; $5 the last id of the page before; $6 at most this many
SELECT (to_jsonb(d) - ARRAY['payload', 'errors'])::text AS body, d.id::text AS cursor
  FROM recur.dead_letters AS d
 WHERE ($1::text IS NULL OR d.provider = $1::text)
   AND ($2::text IS NULL OR d.action_type = $2::text)
   AND ($3::text IS NULL OR d.namespace = $3::text)
   AND ($4::text IS NULL OR d.tenant = $4::text)
   AND ($5::text IS NULL OR d.id < $5::text::uuid)
 ORDER BY d.id DESC
 LIMIT $6::text::int
