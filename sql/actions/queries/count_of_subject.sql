-- $1 int: owner; $2 text: tenant; $3 text: subject
SELECT count(*) FROM recur_internal.definitions AS d WHERE d.subject = $3 AND d.owner_id = $1 AND d.tenant = $2
