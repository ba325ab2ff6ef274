id, action_id, parent_id, endpoint, available_at, created_at, status, attempt, releases, dedup_key, cancel_requested,
in_database, started_at, lease_expires_at, context, context_version, claimed_by, error, errors, extended_at, updated_at,
retry_backoff, metadata, name