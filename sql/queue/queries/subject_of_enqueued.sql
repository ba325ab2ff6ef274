CASE WHEN action_id IS NULL AND subject IS NOT NULL
     THEN jsonb_build_object('namespace', namespace, 'tenant', tenant, 'subject', subject)::text END
