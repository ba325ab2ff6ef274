-- Removing history by hand. By age it goes away by itself, see 23_retention.sql.

CREATE FUNCTION recur._retention() RETURNS interval
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce(nullif(current_setting('recur.retention', true), ''), '7 days')::interval $$;
COMMENT ON FUNCTION recur._retention IS 'Internal: recur.retention, as an interval';

-- Only what is in partitions that were written before then is looked at.
CREATE FUNCTION recur.purge(older_than interval DEFAULT recur._retention()) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    before timestamptz := clock_timestamp() - purge.older_than;
    purged bigint;
BEGIN
    IF purge.older_than IS NULL OR purge.older_than < interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid older_than "%s": must be zero or longer', coalesce(purge.older_than::text, 'NULL')),
            HINT = 'Leave it out to use recur.retention.';
    END IF;
    WITH gone AS (
        DELETE FROM recur.finished_dispatches AS f
         WHERE f.partition = ANY (ARRAY(SELECT 0::smallint
                                         UNION
                                        SELECT h.partition FROM recur.history_turns AS h WHERE h.opened_at <= before))
           AND f.finished_at < before
        RETURNING 1
    )
    SELECT count(*) INTO purged FROM gone;
    RETURN purged;
END
$$;
COMMENT ON FUNCTION recur.purge IS
    'Removes finished dispatches that are older than that, and returns how many; pending and running ones never. Counts and events stay';
