-- Removing history costs the same, however long the history is.
--
-- Finished dispatches and events are kept in rings of nine partitions. One partition of each ring is written at a time,
-- for a seventh of recur.retention. Then the next one, if all of its rows are older than recur.retention, is truncated
-- and written. A row stays for recur.retention and at most a seventh longer. No partition is created or dropped at run
-- time.

DO $$
BEGIN
    FOR number IN 0 .. 8 LOOP
        EXECUTE format('CREATE TABLE recur_internal.finished_dispatches_%1$s
                            PARTITION OF recur_internal.finished_dispatches FOR VALUES IN (%1$s)', number);
        EXECUTE format('COMMENT ON TABLE recur_internal.finished_dispatches_%s IS %L', number,
                       'A partition of recur_internal.finished_dispatches');
        EXECUTE format('CREATE TABLE recur_internal.events_%1$s
                            PARTITION OF recur_internal.events FOR VALUES IN (%1$s)', number);
        EXECUTE format('COMMENT ON TABLE recur_internal.events_%s IS %L', number,
                       'A partition of recur_internal.events');
        EXECUTE format('CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON recur_internal.events_%s
                            FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.events_are_kept()', number);
        PERFORM pg_extension_config_dump(format('recur_internal.finished_dispatches_%s', number)::regclass, '');
        PERFORM pg_extension_config_dump(format('recur_internal.events_%s', number)::regclass, '');
    END LOOP;
END
$$;

-- The latest row names the partition that is written. A restore adds the rows of the dumped database.
CREATE TABLE recur_internal.history_partitions (
    partition smallint    NOT NULL,
    opened_at timestamptz NOT NULL
);
COMMENT ON TABLE recur_internal.history_partitions IS
    'When each partition of the history was opened for writing; the latest row names the partition that is written';
COMMENT ON COLUMN recur_internal.history_partitions.partition IS 'The number at the end of the partitions'' names';
COMMENT ON COLUMN recur_internal.history_partitions.opened_at IS 'From when on the partition was written';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.history_partitions', '');

-- The result may be a tenth of a second old, as in a transaction that takes as long.
CREATE FUNCTION recur_internal.history_partition() RETURNS smallint
    LANGUAGE c STABLE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'history_partition_wrapper';
COMMENT ON FUNCTION recur_internal.history_partition IS 'Internal: the partition that history is written to now';

CREATE FUNCTION recur_internal.next_partition(retention interval, at timestamptz) RETURNS smallint
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    partitions CONSTANT int := 9;
    current    recur_internal.history_partitions;
    following  smallint;
    closed_at  timestamptz;
BEGIN
    SELECT h.* INTO current FROM recur_internal.history_partitions AS h ORDER BY h.opened_at DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    IF next_partition.at < current.opened_at + next_partition.retention / 7 THEN
        RETURN NULL;
    END IF;
    following := (current.partition + 1) % partitions;
    -- The following partition was written until the one behind it was opened.
    SELECT max(h.opened_at) INTO closed_at
      FROM recur_internal.history_partitions AS h WHERE h.partition = (following + 1) % partitions;
    IF closed_at > next_partition.at - next_partition.retention
       AND EXISTS (SELECT FROM recur_internal.history_partitions AS h WHERE h.partition = following) THEN
        RETURN NULL;
    END IF;
    RETURN following;
END
$$;
COMMENT ON FUNCTION recur_internal.next_partition IS
    'Internal: the partition of the history that is to be opened at this time; NULL if none is';

-- The maintenance process calls it.
CREATE FUNCTION recur_internal.open_next_partition(retention interval, at timestamptz) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    following smallint;
BEGIN
    -- A table lock, not an advisory one, which any role could take.
    LOCK TABLE recur_internal.history_partitions IN SHARE ROW EXCLUSIVE MODE;
    following := recur_internal.next_partition(open_next_partition.retention, open_next_partition.at);
    IF following IS NULL THEN
        RETURN false;
    END IF;
    IF EXISTS (SELECT FROM recur_internal.history_partitions) THEN
        EXECUTE format('TRUNCATE recur_internal.finished_dispatches_%1$s, recur_internal.events_%1$s', following);
        DELETE FROM recur_internal.history_partitions AS h WHERE h.partition = following;
    END IF;
    INSERT INTO recur_internal.history_partitions (partition, opened_at) VALUES (following, open_next_partition.at);
    RETURN true;
END
$$;
COMMENT ON FUNCTION recur_internal.open_next_partition IS
    'Internal: truncates and opens the next partition of the history, if its time has come; true if it has';
