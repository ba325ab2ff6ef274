($12 IS NULL OR d.id < $12)
 ORDER BY d.id DESC
