l.status <> 'pending' AND l.attempt = u.attempt AND l.lease_expires_at > recur.clock()
       AND ($6 IS NULL OR l.owner_id = ANY ($6))
