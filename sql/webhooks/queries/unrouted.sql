l.status <> 'running' AND l.provider = 'webhook' AND l.endpoint IS NULL AND l.primary_agent IS NULL
