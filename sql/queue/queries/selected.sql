p.priority = $2 AND (p.available_at, p.created_at) >= ($3, $4) AND p.available_at <= $1
           AND ($5 IS NULL OR p.provider = ANY ($5))
           AND ($7 IS NULL OR p.action_type = ANY ($7) OR p.action_type ^@ ANY ($11))
           AND ($8 IS NULL OR p.namespace = ANY ($8))
           AND ($9 IS NULL OR p.tenant = ANY ($9))
           AND (p.primary_agent IS NULL OR p.primary_agent = $12 OR $12 = '*'
                OR (p.fallback_agent = $12
                    AND (p.attempt > p.releases OR p.available_at + p.fallback_after <= $1)))
