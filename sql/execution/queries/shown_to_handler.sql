jsonb_build_object('id', c.id, 'attempt', {{attempt}}, 'max_attempts', c.max_attempts, 'trigger', c.trigger,
                          'scheduled_at', c.scheduled_at, 'action_id', c.action_id, 'namespace', c.namespace,
                          'tenant', c.tenant, 'subject', c.subject, 'provider', c.provider,
                          'action_type', c.action_type, 'dedup_key', c.dedup_key,
                          'metadata', coalesce(c.metadata, '{}'), 'labels', coalesce(c.labels, '{}'),
                          'raw_payload', encode(c.raw_payload, 'base64'))
