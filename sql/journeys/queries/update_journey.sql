-- $1 int: owner; $2 text: name; $3 text: version; $4 jsonb: states; $5 timestamptz: now
UPDATE recur_internal.journeys AS j
   SET states = $4, updated_at = $5
 WHERE j.owner_id = $1 AND j.name = $2 AND j.version = $3
