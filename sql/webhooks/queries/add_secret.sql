-- Gives an endpoint, which the caller has locked or inserted, a signing secret. The former one holds for another while,
-- and what has expired is removed. Returns how many others hold.
-- $1 int: owner; $2 text: endpoint; $3 text: secret; $4 timestamptz: now; $5 timestamptz: until when the former one
-- holds
WITH expired AS (
    DELETE FROM recur_internal.endpoint_secrets AS s
     WHERE s.owner_id = $1 AND s.endpoint = $2 AND s.expires_at <= $4
), former AS (
    UPDATE recur_internal.endpoint_secrets AS s
       SET expires_at = $5
     WHERE s.owner_id = $1 AND s.endpoint = $2 AND s.expires_at IS NULL AND s.secret <> $3
), present AS (
    INSERT INTO recur_internal.endpoint_secrets (owner_id, endpoint, secret, created_at)
    VALUES ($1, $2, $3, $4)
        ON CONFLICT ON CONSTRAINT endpoint_secrets_pkey DO UPDATE SET expires_at = NULL, created_at = $4
)
SELECT count(*) FROM recur_internal.endpoint_secrets AS s
 WHERE s.owner_id = $1 AND s.endpoint = $2 AND s.secret <> $3 AND (s.expires_at IS NULL OR s.expires_at > $4)
