CASE WHEN {{row}}.action_id IS NULL THEN coalesce({{row}}.metadata, '{}')
     ELSE coalesce({{row}}.metadata, '{}')
          || jsonb_object(ARRAY['_recurring_dispatch', 'true', '_recurring_id', {{row}}.action_id::text])
END AS metadata
