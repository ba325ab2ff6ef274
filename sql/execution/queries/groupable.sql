(c.action_type = ANY ($4) AND c.provider <> 'sql' AND c.primary_agent IS NULL AND c.lock_group IS NULL
        -- The last attempt is made once.
        AND c.attempt + 1 < c.max_attempts
        AND pg_column_size(c.payload) <= 16384
        -- A run finds the context of the run before it.
        AND (c.action_id IS NULL OR (SELECT p.context FROM recur_internal.progress AS p
                                      WHERE p.action_id = c.action_id) IS NULL))
