-- Is there any quota?
SELECT true FROM recur_internal.quotas AS q LIMIT 1
