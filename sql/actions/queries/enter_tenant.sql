-- Two sessions that fill the last place of a tenant both write this row: the later one waits, or fails to serialize.
-- $1 int: owner; $2 text: tenant
INSERT INTO recur_internal.tenants AS t (owner_id, tenant, changed_at) VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (owner_id, tenant) DO UPDATE SET changed_at = excluded.changed_at
