-- $1 int: owner; $2 text: tenant
SELECT count(*) FROM recur_internal.definitions AS d WHERE d.owner_id = $1 AND d.tenant = $2
