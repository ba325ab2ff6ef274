-- Where this database is at home. Anywhere else, a copy of it holds its fire: docs/copies.md.

CREATE TABLE recur_internal.home (
    cluster    bigint NOT NULL,
    database   oid    NOT NULL,
    site       text   NOT NULL,
    move_until timestamptz
);
COMMENT ON TABLE recur_internal.home IS
    'Where this database is at home; elsewhere it holds its fire. Written with the first action or dispatch';
COMMENT ON COLUMN recur_internal.home.cluster IS 'The system identifier of the cluster';
COMMENT ON COLUMN recur_internal.home.database IS 'The oid of the database in that cluster';
COMMENT ON COLUMN recur_internal.home.site IS 'recur.site there';
COMMENT ON COLUMN recur_internal.home.move_until IS 'Until then the database may go on elsewhere by itself';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.home', '');
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON recur_internal.home
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.cached_table_changed();
ALTER TABLE recur_internal.home ENABLE ALWAYS TRIGGER changed;

CREATE FUNCTION recur_internal.hold_reason() RETURNS text
    LANGUAGE c STABLE PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'hold_reason_wrapper';
COMMENT ON FUNCTION recur_internal.hold_reason IS 'Internal: why this database holds its fire; NULL if it does not';

CREATE FUNCTION recur_internal.settle() RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'settle_by_hand_wrapper';
COMMENT ON FUNCTION recur_internal.settle IS 'Internal: makes this place the home of the database';

-- The owner of the database and admins may call it.
CREATE FUNCTION recur.arm() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    at      timestamptz := recur.clock();
    overdue bigint;
    pending bigint;
    running bigint;
BEGIN
    IF recur_internal.hold_reason() IS NULL THEN
        RAISE NOTICE 'database "%" is not held: there is nothing to arm', current_database();
        RETURN;
    END IF;
    SELECT count(*) INTO overdue FROM recur_internal.timers AS t WHERE t.due_at <= at;
    SELECT count(*) FILTER (WHERE l.status = 'pending' AND l.available_at <= at),
           count(*) FILTER (WHERE l.status = 'running' AND l.lease_expires_at <= at)
      INTO pending, running
      FROM recur_internal.live_dispatches AS l;
    PERFORM recur_internal.settle();
    RAISE LOG 'pg_recur: armed database="%" role="%" overdue=% pending=% expired=%', current_database(), session_user,
        overdue, pending, running;
    RAISE NOTICE USING
        MESSAGE = format('database "%s" is at home here from the commit on', current_database()),
        DETAIL = format('%s actions are overdue, %s pending dispatches can be claimed at once, and %s leases have '
                        'expired.', overdue, pending, running),
        HINT = 'recur.list() and recur.dispatches show them; ROLLBACK leaves the database held.';
END
$$;
COMMENT ON FUNCTION recur.arm IS
    'Starts a copy of a database, which holds its fire: this place is its home from the commit on';

-- The owner of the database and admins may call it.
CREATE FUNCTION recur.expect_move(within interval) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    longest CONSTANT interval := '30 days';
    until timestamptz := clock_timestamp() + expect_move.within;
BEGIN
    IF until <= clock_timestamp() OR until > clock_timestamp() + longest THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid within "%s": must be more than zero and at most %s', expect_move.within, longest),
            HINT = 'NULL takes back what was announced.';
    END IF;
    IF recur_internal.hold_reason() IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = recur_internal.hold_reason(),
            HINT = 'A move is announced where the database comes from; recur.arm() starts it here.';
    END IF;
    UPDATE recur_internal.home AS h SET move_until = until;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('database "%s" has no actions yet: a copy of it holds nothing', current_database());
    END IF;
    RETURN until;
END
$$;
COMMENT ON FUNCTION recur.expect_move IS
    'Lets copies of this database that start within a time go on by themselves where they are; NULL takes it back';
