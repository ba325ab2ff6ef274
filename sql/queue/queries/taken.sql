l.status = 'pending' AND l.ctid = u.version::tid AND ($7 IS NULL OR l.owner_id = ANY ($7))
