-- Rows for endpoints that have none yet.
-- $1 int[]: owners; $2 text[]: names
INSERT INTO recur_internal.endpoint_health (owner_id, endpoint)
SELECT u.owner_id, u.endpoint FROM unnest($1, $2) AS u (owner_id, endpoint)
    ON CONFLICT DO NOTHING
