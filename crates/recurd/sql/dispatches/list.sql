-- A page of dispatches, the newest first, without what may be large.
-- $1 status; $2 the id of an action; $3 provider; $4 action_type; $5 namespace; $6 tenant; $7 subject;
-- $8 the last id of the page before; $9 at most this many
SELECT (to_jsonb(d) - ARRAY['payload', 'raw_payload', 'metadata', 'context', 'result', 'errors'])::text AS body,
       d.id::text AS cursor
  FROM recur.dispatches AS d
 WHERE ($1::text IS NULL OR d.status = $1::text)
   AND ($2::text IS NULL OR d.action_id = $2::text::uuid)
   AND ($3::text IS NULL OR d.provider = $3::text)
   AND ($4::text IS NULL OR d.action_type = $4::text)
   AND ($5::text IS NULL OR d.namespace = $5::text)
   AND ($6::text IS NULL OR d.tenant = $6::text)
   AND ($7::text IS NULL OR d.subject = $7::text)
   AND ($8::text IS NULL OR d.id < $8::text::uuid)
 ORDER BY d.id DESC
 LIMIT $9::text::int
