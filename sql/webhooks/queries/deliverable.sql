p.status <> 'running' AND p.endpoint IS NOT NULL AND p.primary_agent IS NULL AND p.owner_id = w.owner_id
               AND p.endpoint = w.endpoint
