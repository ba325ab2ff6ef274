-- How many bytes of payload webhooks have, as they are stored.
-- $1 uuid[]: dispatches
SELECT l.id, coalesce(pg_column_size(l.payload), 0)::bigint + coalesce(pg_column_size(l.raw_payload), 0)
  FROM recur_internal.live_dispatches AS l
 WHERE l.id = ANY ($1)
