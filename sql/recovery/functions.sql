-- What happens to dispatches without a report of their consumer.

CREATE FUNCTION recur_internal.expire_leases(at timestamptz DEFAULT recur.clock(), "limit" int DEFAULT 10000)
    RETURNS bigint
    LANGUAGE c STRICT
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'expire_leases_wrapper';
COMMENT ON FUNCTION recur_internal.expire_leases IS
    'Internal: takes running dispatches from consumers whose lease has expired; returns how many';

CREATE FUNCTION recur.recover(max_age interval) RETURNS bigint
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'recover_wrapper';
COMMENT ON FUNCTION recur.recover IS
    'Gives up the runs, of all owners, that have given no sign of life for max_age, neither been claimed nor extended: '
    'they fail for good. Returns how many';

CREATE FUNCTION recur.cancel(INOUT id uuid, reason text DEFAULT NULL, OUT attempt int, OUT status text,
                             OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'cancel_wrapper';
COMMENT ON FUNCTION recur.cancel IS
    'Cancels a pending dispatch. A running one is asked to stop: its consumer sees cancel_requested when it extends '
    'the lease';

CREATE FUNCTION recur.retry(INOUT id uuid, OUT attempt int, OUT status text,
                            OUT available_at timestamptz, OUT cancel_requested boolean)
    RETURNS SETOF record
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'retry_wrapper';
COMMENT ON FUNCTION recur.retry IS
    'Lets a dispatch that has failed for good, or was cancelled, be claimed once more, at once';

CREATE VIEW recur.dead_letters WITH (security_barrier) AS
SELECT f.id, f.action_id, d.name, f.scheduled_at, f.namespace, f.tenant,
       recur_internal.owner_name(f.owner_id) AS owner, f.subject, f.provider, f.action_type, f.payload, f.attempt,
       f.finished_at, f.error, f.errors
  FROM recur_internal.finished_dispatches AS f
  LEFT JOIN recur_internal.definitions AS d ON d.id = f.action_id
 WHERE f.status <> 'completed' AND f.status = 'failed'
   AND ((SELECT recur_internal.sees_all()) OR f.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]))
 ORDER BY f.finished_at DESC;
COMMENT ON VIEW recur.dead_letters IS
    'Dispatches that have failed for good, the newest first; recur.retry gives a dispatch another chance';
COMMENT ON COLUMN recur.dead_letters.id IS 'Identifies the dispatch: what recur.retry takes';
COMMENT ON COLUMN recur.dead_letters.payload IS 'The arguments, as they were when the dispatch came due';
COMMENT ON COLUMN recur.dead_letters.name IS 'The name of the action';
COMMENT ON COLUMN recur.dead_letters.owner IS 'The owner of the dispatch';
