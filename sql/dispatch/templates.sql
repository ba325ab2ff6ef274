-- From a definition to the columns of its dispatches.

CREATE VIEW recur_internal.dispatch_templates AS
SELECT d.ctid AS definition, d.id AS action_id, d.namespace, d.tenant, d.owner_id, d.subject, d.provider, d.action_type,
       CASE WHEN d.endpoint IS NULL
            THEN recur_internal.runs_in_database(d.owner_id, d.provider, d.action_type) END AS in_database, d.payload,
       CASE WHEN d.journey IS NULL THEN nullif(d.metadata, '{}')
            ELSE d.metadata || jsonb_object(ARRAY['_journey', d.journey, '_journey_version', d.journey_version,
                                                  '_start_state', d.start_state]) END AS metadata,
       d.dedup_key, d.primary_agent, d.fallback_agent,
       CASE WHEN d.fallback_agent IS NOT NULL THEN d.fallback_after END AS fallback_after,
       d.priority, d.lock_group, d.notify_channel, d.record_events, d.max_attempts,
       nullif(d.lease, recur_internal.default_lease()) AS lease, d.endpoint
  FROM recur_internal.definitions AS d;
COMMENT ON VIEW recur_internal.dispatch_templates IS 'Internal: what each dispatch of an action is made of';
COMMENT ON COLUMN recur_internal.dispatch_templates.definition IS 'Where the definition is stored';
COMMENT ON COLUMN recur_internal.dispatch_templates.action_id IS 'The action';
COMMENT ON COLUMN recur_internal.dispatch_templates.in_database IS 'True if the database itself runs the dispatch';

CREATE FUNCTION recur_internal.expanded_key(template text, action_id uuid, scheduled_at timestamptz) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT replace(replace(template, '{{recurring_id}}', action_id::text), '{{execution_time}}',
                   to_char(scheduled_at AT TIME ZONE 'UTC',
                           CASE WHEN date_trunc('second', scheduled_at) = scheduled_at
                                THEN 'YYYY-MM-DD"T"HH24:MI:SS"Z"' ELSE 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"' END))
$$;
COMMENT ON FUNCTION recur_internal.expanded_key IS 'Internal: a dedup_key template, filled in for one occurrence';
