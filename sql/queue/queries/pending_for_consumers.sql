p.status = 'pending' AND (p.in_database IS NULL AND p.provider <> 'webhook' OR p.provider = ANY ($5))
           AND (p.endpoint IS NULL OR p.primary_agent IS NOT NULL)