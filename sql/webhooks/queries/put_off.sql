-- Makes webhooks, which the caller has locked, available later.
-- $1 uuid[]: dispatches; $2 timestamptz: when
UPDATE recur_internal.live_dispatches AS l
   SET available_at = $2, updated_at = recur.clock()
 WHERE l.id = ANY ($1)
