-- Merges with the latest pending dispatch of the same key: what was given is taken over, and the rest of the pending
-- one stays. A body from outside is replaced with all that describes it. {announced} is announced_columns.sql; the last
-- column names what was given and differs, but is not taken over.
-- $1 text: dedup key; $2 text: namespace; $3 text: tenant; $4 int: owner; $5 text: provider; $6 text: action type; $7
-- text: trigger; $8 interval: window, NULL for any age; $9 jsonb: payload; $10 bytea: raw payload; $11 jsonb: metadata;
-- $12 text: name; $13 jsonb: labels; $14 timestamptz: when to run; $15 int: priority; $16 text: subject; $17 text: lock
-- group; $18 text: channel; $19 int: max attempts; $20 jsonb: back-off; $21 interval: lease; each from $9 on NULL where
-- it was not given; $22 text: endpoint, NULL for any
UPDATE recur_internal.live_dispatches AS l
   SET payload = coalesce($9, l.payload), raw_payload = $10,
       metadata = CASE WHEN $10 IS NULL THEN coalesce($11, l.metadata) ELSE $11 END, name = coalesce($12, l.name),
       labels = coalesce($13, l.labels), scheduled_at = coalesce($14, l.scheduled_at),
       available_at = coalesce($14, l.available_at), priority = coalesce($15, l.priority), updated_at = recur.clock()
 WHERE l.id = (SELECT p.id FROM recur_internal.live_dispatches AS p
                WHERE p.dedup_key = $1 AND p.status = 'pending' AND p.namespace = $2 AND p.tenant = $3
                  AND p.owner_id = $4 AND p.provider = $5 AND p.action_type = $6 AND p.trigger = $7
                  AND ($22 IS NULL OR p.endpoint = $22)
                  AND ($8 IS NULL OR p.created_at > recur.clock() - $8)
                ORDER BY p.created_at DESC LIMIT 1
                  FOR UPDATE)
   AND l.status = 'pending'
RETURNING {{announced}},
          concat_ws(', ', CASE WHEN $16 IS DISTINCT FROM l.subject AND $16 IS NOT NULL THEN 'subject' END,
                    CASE WHEN $17 IS DISTINCT FROM l.lock_group AND $17 IS NOT NULL THEN 'lock_group' END,
                    CASE WHEN $18 IS DISTINCT FROM l.notify_channel AND $18 IS NOT NULL THEN 'notify_channel' END,
                    CASE WHEN $19 IS DISTINCT FROM l.max_attempts AND $19 IS NOT NULL THEN 'max_attempts' END,
                    CASE WHEN $20 IS DISTINCT FROM l.retry_backoff AND $20 IS NOT NULL THEN 'retry_backoff' END,
                    CASE WHEN $21 IS DISTINCT FROM l.lease AND $21 IS NOT NULL THEN 'lease' END)
