-- A dispatch that belongs to no action.
-- $1 uuid: id; $2 timestamptz: when it is scheduled and available; $3 text: trigger; $4 text: namespace; $5 text:
-- tenant; $6 int: owner; $7 text: subject; $8 text: provider; $9 text: action type; $10 jsonb: payload; $11 bytea: raw
-- payload; $12 jsonb: metadata; $13 text: dedup key; $14 int: priority; $15 text: lock group; $16 text: channel; $17
-- int: max attempts; $18 jsonb: back-off; $19 interval: lease; $20 text: name; $21 jsonb: labels; $22 text: endpoint
INSERT INTO recur_internal.live_dispatches
       (id, scheduled_at, available_at, trigger, namespace, tenant, owner_id, subject, provider, action_type, payload,
        raw_payload, metadata, dedup_key, priority, lock_group, notify_channel, max_attempts, retry_backoff, lease,
        name, labels, endpoint, in_database)
VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        CASE WHEN $22 IS NULL THEN recur_internal.runs_in_database($6, $8, $9) END)
