-- Notes a success of an endpoint that is sound, unless another session is writing its row.
-- $1 int: owner; $2 text: name; $3 timestamptz: now; $4 int: HTTP status
UPDATE recur_internal.endpoint_health AS h
   SET last_delivered_at = $3, last_status = coalesce($4, h.last_status)
 WHERE (h.owner_id, h.endpoint) = (SELECT o.owner_id, o.endpoint FROM recur_internal.endpoint_health AS o
                                    WHERE o.owner_id = $1 AND o.endpoint = $2
                                      FOR UPDATE SKIP LOCKED)
