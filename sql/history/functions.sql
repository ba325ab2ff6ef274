-- Earlier contexts, and removing history by hand. partitions.sql removes history by age.

CREATE VIEW recur.contexts WITH (security_barrier) AS
SELECT c.action_id, c.version, c.context, c.dispatch_id, c.actor, c.at
  FROM recur_internal.contexts AS c
  JOIN recur_internal.definitions AS d ON d.id = c.action_id
 WHERE (SELECT recur_internal.sees_all()) OR d.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur.contexts IS 'The last hundred contexts of each action';

CREATE FUNCTION recur.context_history(id uuid, "limit" int DEFAULT 10)
    RETURNS TABLE (version int, context jsonb, dispatch_id uuid, actor text, at timestamptz)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions;
    known  uuid := recur_internal.action_id(context_history.id::text, NULL, NULL, NULL);
    most   int := recur_internal.checked_limit(context_history."limit");
BEGIN
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = known;
    RETURN QUERY
    SELECT c.version, c.context, c.dispatch_id, c.actor, c.at
      FROM recur.contexts AS c
     WHERE c.action_id = action.id
     UNION ALL
    SELECT action.context_version, action.context, NULL::uuid, action.owner, action.created_at
     WHERE action.context_version = 1
       AND NOT EXISTS (SELECT FROM recur.contexts AS c WHERE c.action_id = action.id AND c.version = 1)
     ORDER BY 1 DESC
     LIMIT most;
END
$$;
COMMENT ON FUNCTION recur.context_history(uuid, int) IS
    'The contexts that an action has had, the latest first, with the role that wrote each. The last hundred are kept';
CREATE FUNCTION recur.context_history(
    action text, "limit" int DEFAULT 10, namespace text DEFAULT NULL, tenant text DEFAULT NULL,
    subject text DEFAULT NULL
) RETURNS TABLE (version int, context jsonb, dispatch_id uuid, actor text, at timestamptz)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT h.* FROM recur.context_history(recur_internal.action_id(action, namespace, tenant, subject),
                                         recur_internal.checked_limit("limit")) AS h
$$;
COMMENT ON FUNCTION recur.context_history(text, int, text, text, text) IS
    'The contexts that the action with this name or id has had, the latest first';

CREATE FUNCTION recur_internal.retention() RETURNS interval
    LANGUAGE c STABLE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'retention_wrapper';
COMMENT ON FUNCTION recur_internal.retention IS 'Internal: recur.retention, as an interval';

-- Reads only partitions that were opened before the limit.
CREATE FUNCTION recur.purge(older_than interval DEFAULT recur_internal.retention()) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before timestamptz := recur.clock() - purge.older_than;
    purged bigint;
BEGIN
    IF purge.older_than IS NULL OR purge.older_than < interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid older_than "%s": must be zero or longer',
                             coalesce(purge.older_than::text, 'NULL')),
            HINT = 'Leave it out to use recur.retention.';
    END IF;
    WITH gone AS (
        DELETE FROM recur_internal.finished_dispatches AS f
         WHERE f.partition = ANY (ARRAY(SELECT 0::smallint
                                         UNION
                                        SELECT h.partition FROM recur_internal.history_partitions AS h
                                         WHERE h.opened_at <= before))
           AND f.finished_at < before
        RETURNING 1
    )
    SELECT count(*) INTO purged FROM gone;
    RETURN purged;
END
$$;
COMMENT ON FUNCTION recur.purge IS
    'Removes finished dispatches that are older than older_than, and returns how many. Pending and running dispatches, '
    'counts and events stay';
