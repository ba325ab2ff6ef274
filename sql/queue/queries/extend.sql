-- Renews a lease. A lease of default length does not shorten a longer one. {longest} as in claim.sql.
-- $1 uuid: dispatch; $2 int: attempt; $3 interval: lease, or NULL; $4 int[]: owners that the caller sees, NULL for all
UPDATE recur_internal.live_dispatches AS l
   SET extended_at = recur.clock(),
       lease_expires_at = CASE WHEN $3 IS NOT NULL THEN recur.clock() + $3
       ELSE greatest(l.lease_expires_at,
                     recur.clock()
                     + least(coalesce(l.lease, recur_internal.default_lease()), interval '{{longest}}')) END
 WHERE l.id = $1 AND l.status <> 'pending' AND l.attempt = $2 AND l.lease_expires_at > recur.clock()
   AND ($4 IS NULL OR l.owner_id = ANY ($4))
RETURNING l.attempt, l.available_at, l.cancel_requested
