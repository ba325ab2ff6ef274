-- $1 int: owner; $2 text: key; $3 timestamptz: older ones are forgotten
SELECT k.fingerprint, k.status, k.response
  FROM recur_internal.request_keys AS k
 WHERE k.owner_id = $1 AND k.key = $2 AND k.created_at > $3
