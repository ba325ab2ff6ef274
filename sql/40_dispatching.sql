-- Turning due actions into dispatches.

-- Runs as the extension's owner: it does for all owners what the background worker does, and only an admin may call it.

CREATE FUNCTION recur.tick(
    at timestamptz DEFAULT clock_timestamp(),
    OUT dispatched bigint, OUT skipped bigint, OUT ended bigint, OUT failed bigint
) RETURNS SETOF record
    LANGUAGE c STRICT SECURITY DEFINER
    ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'tick_wrapper';
COMMENT ON FUNCTION recur.tick IS
    'Dispatches what is due at this instant, as the background worker does by itself, and returns how many';
