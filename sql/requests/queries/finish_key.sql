-- $1 int: owner; $2 text: key; $3 int: status; $4 jsonb: response
UPDATE recur_internal.request_keys AS k
   SET status = $3, response = $4
 WHERE k.owner_id = $1 AND k.key = $2 AND k.status IS NULL
