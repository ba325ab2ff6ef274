-- Takes a key that is new or forgotten, and waits for a transaction that has taken it and is still open.
-- $1 int: owner; $2 text: key; $3 text: fingerprint; $4 timestamptz: now; $5 timestamptz: older ones are forgotten
INSERT INTO recur_internal.request_keys AS k (owner_id, key, fingerprint, created_at)
VALUES ($1, $2, $3, $4)
    ON CONFLICT ON CONSTRAINT request_keys_pkey
    DO UPDATE SET fingerprint = EXCLUDED.fingerprint, created_at = EXCLUDED.created_at, status = NULL, response = NULL
 WHERE k.created_at <= $5
