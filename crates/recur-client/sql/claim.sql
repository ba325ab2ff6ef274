SELECT id, action_id, scheduled_at, namespace, tenant, subject, provider, action_type, payload, metadata, context,
       attempt, max_attempts, cancel_requested
  FROM recur.claim($1, $2, $3, $4, $5, make_interval(secs => $6), $7, $8)
