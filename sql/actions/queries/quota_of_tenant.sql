-- The quota of a tenant, or else that of all tenants.
-- $1 text: tenant
SELECT q.max_actions, q.max_actions_per_subject
  FROM recur_internal.quotas AS q
 WHERE q.tenant = $1 OR q.tenant IS NULL
 ORDER BY q.tenant NULLS LAST
 LIMIT 1
