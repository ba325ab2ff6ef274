-- The endpoints of owners that get webhooks by their patterns.
-- $1 int[]: owners
SELECT e.owner_id, e.name, e.patterns
  FROM recur_internal.endpoints AS e
  LEFT JOIN recur_internal.endpoint_health AS h ON h.owner_id = e.owner_id AND h.endpoint = e.name
 WHERE e.owner_id = ANY ($1) AND e.enabled AND h.disabled_at IS NULL AND e.patterns <> '{}'
 ORDER BY e.owner_id, e.name
