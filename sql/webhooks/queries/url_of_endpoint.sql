-- $1 int: owner; $2 text: name
SELECT e.url FROM recur_internal.endpoints AS e WHERE e.owner_id = $1 AND e.name = $2
