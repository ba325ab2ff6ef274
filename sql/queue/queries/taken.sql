l.status = 'pending' AND l.ctid = u.version::tid AND ($6 IS NULL OR l.owner_id = ANY ($6))
