-- Endpoints of the operator that get nothing any more.
SELECT h.endpoint FROM recur_internal.endpoint_health AS h WHERE h.owner_id = 0 AND h.disabled_at IS NOT NULL
