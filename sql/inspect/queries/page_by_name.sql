($12 IS NULL OR (d.namespace, d.tenant, d.name, d.id) > ($9, $10, $11, $12))
 ORDER BY d.namespace, d.tenant, d.name, d.id
