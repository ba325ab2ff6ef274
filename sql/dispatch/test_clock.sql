-- Test databases: nothing fires by itself, and the clock is set by hand.

CREATE FUNCTION recur.mark_test_database() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM recur_internal.test_clock) THEN
        RETURN;
    END IF;
    -- No session creates an action between the check and the mark. The lock conflicts with itself: two sessions that
    -- both held it would wait for each other as soon as one of them creates an action.
    LOCK TABLE recur_internal.definitions, recur_internal.live_dispatches IN SHARE ROW EXCLUSIVE MODE;
    -- Another session may have marked the database, and created an action, while this one waited.
    IF EXISTS (SELECT FROM recur_internal.test_clock) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM recur_internal.definitions) OR EXISTS (SELECT FROM recur_internal.live_dispatches) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('database "%s" has actions or dispatches: it can''t become a test database',
                             current_database()),
            HINT = 'Mark a new database, before the first action is created.';
    END IF;
    -- What is created here from now on never fires by itself, at whatever place: it needs no home.
    DELETE FROM recur_internal.home;
    INSERT INTO recur_internal.test_clock (ahead) VALUES ('0') ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION recur.mark_test_database IS
    'Makes a database without actions a test database: recur.set_clock sets its clock, only recur.tick() dispatches';

CREATE FUNCTION recur_internal.settable(at timestamptz) RETURNS timestamptz
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'settable_wrapper';
COMMENT ON FUNCTION recur_internal.settable IS
    'Internal: the instant that the clock is set to, if any; raises unless this is a test database';

-- The new reading of the clock; both NULL make it go with the server's.
CREATE FUNCTION recur_internal.write_clock(at timestamptz, ahead interval) RETURNS timestamptz
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE recur_internal.test_clock AS c
       SET at = write_clock.at,
           ahead = CASE WHEN write_clock.at IS NULL THEN coalesce(write_clock.ahead, '0') END;
    RETURN recur.clock();
END
$$;
COMMENT ON FUNCTION recur_internal.write_clock IS 'Internal: sets the clock of a test database';

CREATE FUNCTION recur.set_clock(at timestamptz) RETURNS timestamptz
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT recur_internal.write_clock(recur_internal.settable(at), NULL) $$;
COMMENT ON FUNCTION recur.set_clock(timestamptz) IS
    'In a test database: the clock stands still at an instant until it is set again; NULL: it goes with the server''s';

CREATE FUNCTION recur.set_clock(ahead interval) RETURNS timestamptz
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT recur_internal.write_clock(recur_internal.settable(NULL), ahead) $$;
COMMENT ON FUNCTION recur.set_clock(interval) IS
    'In a test database: the clock goes, this far ahead of the server''s';

-- PostgreSQL takes an untyped literal or parameter for a text.
CREATE FUNCTION recur.set_clock("at or ahead" text) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    instant timestamptz := recur_internal.settable(NULL);
BEGIN
    RETURN recur_internal.write_clock(NULL, "at or ahead"::interval);
EXCEPTION
    WHEN invalid_datetime_format OR invalid_text_representation THEN
        instant := recur_internal.settable("at or ahead"::timestamptz);
        RETURN recur_internal.write_clock(instant, NULL);
END
$$;
COMMENT ON FUNCTION recur.set_clock(text) IS
    'In a test database: sets the clock to an instant, or this far ahead of the server''s';
