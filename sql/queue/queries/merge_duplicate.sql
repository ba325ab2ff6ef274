-- Gives the latest pending dispatch with the same key the new payload, and returns its id.
-- $1 text: dedup key; $2 text: namespace; $3 text: tenant; $4 int: owner; $5 text: provider; $6 text: action type; $7
-- text: trigger; $8 interval: window, NULL for any age; $9 jsonb: payload; $10 bytea: raw payload; $11 jsonb: metadata;
-- $12 text: name, or NULL; $13 jsonb: labels, or NULL
UPDATE recur_internal.live_dispatches AS l
   SET payload = $9, raw_payload = $10, metadata = $11, name = coalesce($12, l.name),
       labels = coalesce($13, l.labels), updated_at = recur.clock()
 WHERE l.id = (SELECT p.id FROM recur_internal.live_dispatches AS p
                WHERE p.dedup_key = $1 AND p.status = 'pending' AND p.namespace = $2 AND p.tenant = $3
                  AND p.owner_id = $4 AND p.provider = $5 AND p.action_type = $6 AND p.trigger = $7
                  AND ($8 IS NULL OR p.created_at > recur.clock() - $8)
                ORDER BY p.created_at DESC LIMIT 1
                  FOR UPDATE)
   AND l.status = 'pending'
RETURNING l.id
