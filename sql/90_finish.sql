-- Word to the workers.

CREATE FUNCTION recur._extension_created() RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'extension_created_wrapper';
COMMENT ON FUNCTION recur._extension_created IS 'Internal: tells the launcher, or warns that there is none';
REVOKE ALL ON FUNCTION recur._extension_created FROM PUBLIC;
SELECT recur._extension_created();
