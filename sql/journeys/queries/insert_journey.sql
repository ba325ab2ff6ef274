-- $1 int: owner; $2 text: name; $3 text: version; $4 jsonb: states; $5 timestamptz: now
INSERT INTO recur_internal.journeys (owner_id, name, version, states, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $5)
    ON CONFLICT DO NOTHING
