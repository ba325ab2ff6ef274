-- $1 int: owner; $2 text: name; $3 to $11 as in insert_endpoint.sql
UPDATE recur_internal.endpoints AS e
   SET url = $3, patterns = $4, headers = $5, timeout = $6, rate = $7, concurrency = $8, enabled = $9,
       description = $10, updated_at = $11
 WHERE e.owner_id = $1 AND e.name = $2
