-- Old history goes away at a cost that does not grow with it.
--
-- Finished dispatches and events are kept in rings of partitions. One partition of each ring is written at a time, for
-- a seventh of recur.retention; then the next one is, after whatever it still holds, all of it older than
-- recur.retention, has been truncated. So a row stays for recur.retention, and at the most a seventh longer. Nothing is
-- created or dropped at run time, and a change of recur.retention needs no more than the next turn.

DO $$
BEGIN
    FOR number IN 0 .. 8 LOOP
        EXECUTE format('CREATE TABLE recur.finished_dispatches_%1$s PARTITION OF recur.finished_dispatches FOR VALUES IN (%1$s)', number);
        EXECUTE format('COMMENT ON TABLE recur.finished_dispatches_%s IS %L', number, 'A part of recur.finished_dispatches');
        EXECUTE format('CREATE TABLE recur.events_%1$s PARTITION OF recur.events FOR VALUES IN (%1$s)', number);
        EXECUTE format('COMMENT ON TABLE recur.events_%s IS %L', number, 'A part of recur.events');
        EXECUTE format('CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON recur.events_%s
                            FOR EACH STATEMENT EXECUTE FUNCTION recur._events_are_kept()', number);
        PERFORM pg_extension_config_dump(format('recur.finished_dispatches_%s', number)::regclass, '');
        PERFORM pg_extension_config_dump(format('recur.events_%s', number)::regclass, '');
    END LOOP;
END
$$;

CREATE TABLE recur.history_turns (
    partition smallint    NOT NULL,
    opened_at timestamptz NOT NULL,
    CONSTRAINT history_turns_pkey PRIMARY KEY (partition)
);
COMMENT ON TABLE recur.history_turns IS 'When each partition of the history was last opened for writing; the latest is the one that is written';
COMMENT ON COLUMN recur.history_turns.partition IS 'The number that the partitions'' names end in';
COMMENT ON COLUMN recur.history_turns.opened_at IS 'When its turn began: everything in it is younger';
SELECT pg_catalog.pg_extension_config_dump('recur.history_turns', '');

-- A restore brings the turns of the old database, while a maintenance worker may have begun the first one of the new: the
-- restored ones count, since the restored history lies in their partitions.
CREATE FUNCTION recur._turn_written() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('recur.history_turns'::regclass::oid::int, 0);
    UPDATE recur.history_turns AS h SET opened_at = NEW.opened_at WHERE h.partition = NEW.partition;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._turn_written IS 'Internal: a turn that is written again replaces the one before';
CREATE TRIGGER replace BEFORE INSERT ON recur.history_turns
    FOR EACH ROW EXECUTE FUNCTION recur._turn_written();

-- It may be a tenth of a second behind: no more than a transaction that takes so long.
CREATE FUNCTION recur._history_partition() RETURNS smallint
    LANGUAGE c STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'history_partition_wrapper';
COMMENT ON FUNCTION recur._history_partition IS 'Internal: the partition that history is written to now';

ALTER TABLE recur.events ALTER COLUMN partition SET DEFAULT recur._history_partition();
ALTER TABLE recur.finished_dispatches ALTER COLUMN partition SET DEFAULT recur._history_partition();

-- Passes the turn on if it is time. Called by the maintenance worker.
CREATE FUNCTION recur._turn_history(retention interval, at timestamptz) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    partitions CONSTANT int := 9;
    current    recur.history_turns;
    following  smallint;
    closed_at  timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock('recur.history_turns'::regclass::oid::int, 0);
    SELECT h.* INTO current FROM recur.history_turns AS h ORDER BY h.opened_at DESC LIMIT 1;
    IF NOT FOUND THEN
        INSERT INTO recur.history_turns (partition, opened_at) VALUES (0, _turn_history.at);
        RETURN true;
    END IF;
    IF _turn_history.at < current.opened_at + _turn_history.retention / 7 THEN
        RETURN false;
    END IF;
    following := (current.partition + 1) % partitions;
    -- What is in it was written until the turn after it began.
    SELECT h.opened_at INTO closed_at FROM recur.history_turns AS h WHERE h.partition = (following + 1) % partitions;
    IF closed_at > _turn_history.at - _turn_history.retention
       AND EXISTS (SELECT FROM recur.history_turns AS h WHERE h.partition = following) THEN
        RETURN false;
    END IF;
    EXECUTE format('TRUNCATE recur.finished_dispatches_%1$s, recur.events_%1$s', following);
    INSERT INTO recur.history_turns (partition, opened_at) VALUES (following, _turn_history.at);
    RETURN true;
END
$$;
COMMENT ON FUNCTION recur._turn_history IS 'Internal: opens the next partition of the history if it is time, and empties it first; true if it was';
