l.id, l.action_id, l.scheduled_at, l.namespace, l.tenant, l.provider, l.action_type, l.notify_channel
