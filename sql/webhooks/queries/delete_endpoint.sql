-- Deletes an endpoint with all that is kept of it.
-- $1 int: owner; $2 text: name
WITH secrets AS (
    DELETE FROM recur_internal.endpoint_secrets AS s WHERE s.owner_id = $1 AND s.endpoint = $2
), health AS (
    DELETE FROM recur_internal.endpoint_health AS h WHERE h.owner_id = $1 AND h.endpoint = $2
)
DELETE FROM recur_internal.endpoints AS e WHERE e.owner_id = $1 AND e.name = $2
