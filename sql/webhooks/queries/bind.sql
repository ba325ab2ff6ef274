-- Binds webhooks, which the caller has locked, to their endpoints. From then on, no handler runs them.
-- $1 uuid[]: dispatches; $2 text[]: the endpoint of each
UPDATE recur_internal.live_dispatches AS l
   SET endpoint = u.endpoint, in_database = NULL, updated_at = recur.clock()
  FROM unnest($1, $2) AS u (id, endpoint)
 WHERE l.id = u.id
RETURNING l.notify_channel
