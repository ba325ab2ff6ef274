-- The time that pg_recur goes by. A test database has a clock of its own, so that an application can test what happens
-- three days from now.

-- Not dumped: a restored copy of a test database is none.
CREATE TABLE recur_internal.test_clock (
    at    timestamptz,
    ahead interval,
    CONSTRAINT test_clock_reads CHECK ((at IS NULL) <> (ahead IS NULL))
);
CREATE UNIQUE INDEX test_clock_once ON recur_internal.test_clock ((true));
COMMENT ON TABLE recur_internal.test_clock IS 'The clock of a test database; a row makes this database one';
COMMENT ON COLUMN recur_internal.test_clock.at IS 'The instant at which the clock stands still';
COMMENT ON COLUMN recur_internal.test_clock.ahead IS 'How far the clock is ahead of the server''s';

-- For small tables that every process keeps in memory. A restore without triggers changes the table's definition, which
-- has the same effect.
CREATE FUNCTION recur_internal.cached_table_changed() RETURNS trigger
    LANGUAGE c
    AS 'MODULE_PATHNAME', 'cached_table_changed_wrapper';
COMMENT ON FUNCTION recur_internal.cached_table_changed IS
    'Internal: makes every session and worker read the table again';
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON recur_internal.test_clock
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.cached_table_changed();
ALTER TABLE recur_internal.test_clock ENABLE ALWAYS TRIGGER changed;

CREATE FUNCTION recur.clock() RETURNS timestamptz
    LANGUAGE c VOLATILE
    AS 'MODULE_PATHNAME', 'clock_wrapper';
COMMENT ON FUNCTION recur.clock IS
    'The time that pg_recur goes by: the server''s, or in a test database what recur.set_clock says';
