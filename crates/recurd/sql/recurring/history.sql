-- A page of the dispatches of an action, the newest first, without what may be large.
-- $1 the id of an action; $2 the cursor of the page before; $3 at most this many
SELECT (to_jsonb(d) - ARRAY['payload', 'raw_payload', 'metadata', 'context', 'result', 'errors'])::text AS body,
       d.scheduled_at::text || '/' || d.id::text AS cursor
  FROM recur.dispatches AS d
 WHERE d.action_id = $1::text::uuid
   AND ($2::text IS NULL
        OR (d.scheduled_at, d.id) < (split_part($2::text, '/', 1)::timestamptz, split_part($2::text, '/', 2)::uuid))
 ORDER BY d.scheduled_at DESC, d.id DESC
 LIMIT $3::text::int
