l.status <> 'pending' AND l.attempt = u.attempt AND l.lease_expires_at > recur.clock()
       AND ($7 IS NULL OR l.owner_id = ANY ($7))
