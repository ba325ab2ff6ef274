-- Jobs of pg_cron become SQL actions. Nothing here needs pg_cron before it is called.

CREATE FUNCTION recur_internal.read_pg_cron(schedule text, timezone text, "from" timestamptz)
    RETURNS TABLE (stored text, seconds int, runs timestamptz[], remark text, problem text)
    LANGUAGE c IMMUTABLE ROWS 1 PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'read_pg_cron_wrapper';
COMMENT ON FUNCTION recur_internal.read_pg_cron IS
    'Internal: the schedule that means what a schedule of pg_cron means there, and its next runs there; or the problem';

-- What the table says is run with the rights of the roles that it names. So it has to be a superuser's, the caller's or
-- the extension's: any other owner could have written what it likes.
CREATE FUNCTION recur_internal.pg_cron_problems(OUT sqlstate text, OUT message text, OUT hint text)
    RETURNS SETOF record
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH jobs AS (
        SELECT r.rolname AS owner, r.rolsuper OR r.rolname = current_user
               OR EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
                           WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
                             AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'pg_cron') AS is_trusted
          FROM pg_class AS c
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
          JOIN pg_roles AS r ON r.oid = c.relowner
         WHERE n.nspname = 'cron' AND c.relname = 'job' AND c.relkind = 'r'
    )
    SELECT '42P01', format('there is no table cron.job in database "%s"', current_database()),
           'pg_cron keeps its jobs in the database that the setting cron.database_name names.'
     WHERE NOT EXISTS (SELECT FROM jobs)
     UNION ALL
    SELECT '42501',
           format('table cron.job is not trusted: it belongs to %s, not to a superuser or to pg_cron', j.owner),
           'Its owner decides what would run as other roles. Look through it, then give it to a superuser.'
      FROM jobs AS j WHERE NOT j.is_trusted
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_problems IS
    'Internal: why the jobs of pg_cron can not be read: there is no table, or its owner is not to be trusted';

-- A job as this extension would have it. Columns that an older pg_cron lacks are NULL.
CREATE FUNCTION recur_internal.pg_cron_reading(
    job jsonb, zone text, at timestamptz,
    OUT jobid bigint, OUT jobname text, OUT action text, OUT pg_cron_schedule text, OUT schedule text,
    OUT timezone text, OUT owner text, OUT command text, OUT active boolean, OUT pg_cron_runs timestamptz[],
    OUT runs timestamptz[], OUT database text, OUT starts_at timestamptz, OUT remark text, OUT problem text
)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (j.job ->> 'jobid')::bigint, j.job ->> 'jobname',
           coalesce(j.job ->> 'jobname', 'pg_cron job ' || (j.job ->> 'jobid')),
           j.job ->> 'schedule', r.stored, CASE WHEN r.stored IS NOT NULL THEN j.zone END,
           j.job ->> 'username', j.job ->> 'command', coalesce((j.job ->> 'active')::boolean, true), r.runs,
           CASE WHEN r.stored IS NOT NULL
                THEN ARRAY(SELECT p.occurrence FROM recur.preview(r.stored, j.zone, j.at, 3, s.starts_at) AS p
                            ORDER BY p.occurrence) END,
           j.job ->> 'database', s.starts_at,
           concat_ws('; ', r.remark,
                     CASE WHEN j.job ->> 'nodeport' <> current_setting('port')
                          THEN format('pg_cron connects to port %s, this server listens on %s',
                                      j.job ->> 'nodeport', current_setting('port')) END),
           CASE WHEN j.job ->> 'nodename' !~ '^(|localhost|127\.0\.0\.1|::1|[/@].*)$'
                THEN format('pg_cron runs it on host %s', j.job ->> 'nodename')
                WHEN NOT EXISTS (SELECT FROM pg_database AS d WHERE d.datname = j.job ->> 'database')
                THEN format('there is no database "%s"', j.job ->> 'database')
                ELSE r.problem END
      FROM (SELECT pg_cron_reading.job, pg_cron_reading.zone, pg_cron_reading.at) AS j,
           recur_internal.read_pg_cron(j.job ->> 'schedule', j.zone, j.at) AS r,
           -- An interval goes on as it would in pg_cron: the first run is not at once.
           LATERAL (SELECT date_trunc('second', j.at) + make_interval(secs => r.seconds) AS starts_at) AS s
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_reading IS
    'Internal: what a row of cron.job becomes; problem says why it can not be imported';

-- What is to be done about a job, where nothing is wrong with its command and its owner.
CREATE FUNCTION recur_internal.pg_cron_plan(
    namespace text, action text, schedule text, timezone text, owner text, command text, active boolean,
    OUT id uuid, OUT status text, OUT note text, OUT runs_here boolean
)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.id,
           CASE WHEN e.id IS NULL THEN 'created'
                WHEN e.provider <> 'sql' THEN 'refused'
                WHEN e.is_same OR NOT pg_cron_plan.active THEN 'unchanged'
                ELSE 'updated' END,
           CASE WHEN e.provider <> 'sql'
                THEN format('action "%s" of namespace "%s" is no SQL action', pg_cron_plan.action,
                            pg_cron_plan.namespace)
                -- It has moved already, and is changed here.
                WHEN NOT e.is_same AND NOT pg_cron_plan.active
                THEN 'the action differs from the job, which is not active, and stays as it is' END,
           coalesce(e.enabled AND e.provider = 'sql', pg_cron_plan.active)
      FROM (VALUES (true)) AS one
      LEFT JOIN LATERAL (
          SELECT a.id, a.provider, a.enabled,
                 (a.schedule::text, a.timezone::text, a.payload ->> 'command')
                     = (pg_cron_plan.schedule, pg_cron_plan.timezone, pg_cron_plan.command) AS is_same
            FROM recur.recurring_actions AS a
           WHERE a.namespace = pg_cron_plan.namespace AND a.name = pg_cron_plan.action
             AND a.owner = pg_cron_plan.owner AND a.tenant = 'default' AND a.subject IS NULL AND NOT a.duplicate
           ) AS e ON true
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_plan IS
    'Internal: whether the action of a job is to be created, updated or left, and whether it is enabled then';

CREATE FUNCTION recur_internal.pg_cron_elsewhere(
    database text, action text, schedule text, timezone text, owner text, command text, active boolean, namespace text
) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT concat_ws(E'\n', format('\c %I', pg_cron_elsewhere.database),
                     format('SELECT recur.create_sql(%L, %L, %L, timezone => %L, namespace => %L, '
                            'overlap => ''queue_one'', enabled => %s, on_existing => ''upsert'');',
                            pg_cron_elsewhere.action, pg_cron_elsewhere.schedule, pg_cron_elsewhere.command,
                            pg_cron_elsewhere.timezone, pg_cron_elsewhere.namespace, pg_cron_elsewhere.active),
                     CASE WHEN pg_cron_elsewhere.owner <> current_user
                          THEN format('SELECT recur.update(%L, %L, namespace => %L);', pg_cron_elsewhere.action,
                                      jsonb_build_object('owner', pg_cron_elsewhere.owner),
                                      pg_cron_elsewhere.namespace) END)
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_elsewhere IS
    'Internal: what to enter into psql to make the action of a job in another database';

-- A row of the answer, before anything is written.
CREATE FUNCTION recur_internal.pg_cron_job(
    job jsonb, zone text, at timestamptz, namespace text,
    OUT jobid bigint, OUT jobname text, OUT action text, OUT pg_cron_schedule text, OUT schedule text,
    OUT timezone text, OUT owner text, OUT command text, OUT active boolean, OUT pg_cron_runs timestamptz[],
    OUT runs timestamptz[], OUT starts_at timestamptz, OUT remark text, OUT id uuid, OUT status text, OUT note text,
    OUT runs_here boolean
)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.jobid, r.jobname, r.action, r.pg_cron_schedule, r.schedule, r.timezone, r.owner, r.command, r.active,
           r.pg_cron_runs, r.runs, r.starts_at,
           concat_ws('; ', nullif(r.remark, ''),
                     CASE WHEN r.runs <> r.pg_cron_runs
                          THEN 'a clock change makes a difference: pg_cron skips or repeats the run' END),
           p.id,
           CASE WHEN r.problem IS NOT NULL THEN 'refused'
                WHEN r.database <> current_database() THEN 'other database'
                ELSE p.status END,
           CASE WHEN r.problem IS NOT NULL THEN r.problem
                WHEN r.database <> current_database()
                THEN recur_internal.pg_cron_elsewhere(r.database, r.action, r.schedule, r.timezone, r.owner, r.command,
                                                      r.active, pg_cron_job.namespace)
                ELSE p.note END,
           r.problem IS NULL AND r.database = current_database() AND p.runs_here
      FROM recur_internal.pg_cron_reading(pg_cron_job.job, pg_cron_job.zone, pg_cron_job.at) AS r,
           recur_internal.pg_cron_plan(pg_cron_job.namespace, r.action, r.schedule, r.timezone, r.owner, r.command,
                                       r.active) AS p
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_job IS
    'Internal: what is to be done about a row of cron.job; the action of that id exists already';

CREATE FUNCTION recur_internal.pg_cron_note(
    note text, remark text, status text, active boolean, runs_here boolean, dry_run boolean, deactivate boolean
) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT nullif(concat_ws('; ', pg_cron_note.note, nullif(pg_cron_note.remark, ''),
        CASE WHEN NOT active OR status IN ('refused', 'other database') THEN NULL
             WHEN NOT runs_here THEN 'pg_cron runs it on, because the action is paused here'
             WHEN deactivate AND dry_run THEN 'would be deactivated in pg_cron'
             WHEN deactivate THEN 'deactivated in pg_cron'
             WHEN NOT dry_run THEN 'pg_cron runs it as well until it is deactivated there' END), '')
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_note IS 'Internal: what else there is to say about an imported job';

-- As the table, so the function: of the owner that is trusted. pg_cron before 1.4 has none.
CREATE FUNCTION recur_internal.pg_cron_deactivation() RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN EXISTS (
        SELECT FROM pg_proc AS p
          JOIN pg_class AS c ON c.relowner = p.proowner AND c.relnamespace = p.pronamespace AND c.relname = 'job'
         WHERE p.oid = to_regprocedure('cron.alter_job(bigint,text,text,text,text,boolean)'))
    THEN 'SELECT cron.alter_job($1, active => false)'
    ELSE 'UPDATE cron.job SET active = false WHERE jobid = $1' END
$$;
COMMENT ON FUNCTION recur_internal.pg_cron_deactivation IS
    'Internal: the statement that keeps pg_cron from running a job';

CREATE FUNCTION recur.import_pg_cron(
    namespace text DEFAULT NULL, dry_run boolean DEFAULT true, deactivate boolean DEFAULT false
) RETURNS TABLE (
    jobid bigint, jobname text, action text, pg_cron_schedule text, schedule text, timezone text, owner text,
    command text, active boolean, pg_cron_runs timestamptz[], runs timestamptz[], status text, note text
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET client_min_messages = warning
AS $$
#variable_conflict use_column
DECLARE
    spaces      CONSTANT text := coalesce(import_pg_cron.namespace, 'cron');
    is_dry      CONSTANT boolean := coalesce(import_pg_cron.dry_run, true);
    deactivates CONSTANT boolean := coalesce(import_pg_cron.deactivate, false);
    -- pg_cron before 1.5 has no such setting, and runs by GMT.
    zone        CONSTANT text := coalesce(nullif(nullif(current_setting('cron.timezone', true), ''), 'GMT'), 'UTC');
    at          CONSTANT timestamptz := recur.clock();
    problem     record;
    job         jsonb;
    plan        record;
    changed     bigint;
    is_written  boolean;
    state       text;
    hint        text;
BEGIN
    FOR problem IN SELECT p.* FROM recur_internal.pg_cron_problems() AS p LOOP
        RAISE EXCEPTION USING ERRCODE = problem.sqlstate, MESSAGE = problem.message, HINT = problem.hint;
    END LOOP;
    FOR job IN EXECUTE 'SELECT to_jsonb(j) FROM cron.job AS j ORDER BY j.jobid' LOOP
        plan := recur_internal.pg_cron_job(job, zone, at, spaces);
        -- The action is written, and in a dry run the write is rolled back: so that both come to the same result.
        BEGIN
            is_written := false;
            IF plan.status = 'created' THEN
                INSERT INTO recur.recurring_actions (name, namespace, owner, schedule, timezone, starts_at, provider,
                                                     action_type, payload, metadata, overlap, enabled, paused_reason)
                VALUES (plan.action, spaces, plan.owner, plan.schedule, plan.timezone, plan.starts_at, 'sql', 'command',
                        jsonb_build_object('command', plan.command),
                        jsonb_build_object('pg_cron_jobid', plan.jobid::text), 'queue_one', plan.active,
                        CASE WHEN NOT plan.active THEN 'was not active in pg_cron' END);
            ELSIF plan.status = 'updated' THEN
                UPDATE recur.recurring_actions AS a
                   SET schedule = plan.schedule, timezone = plan.timezone,
                       payload = a.payload || jsonb_build_object('command', plan.command)
                 WHERE a.id = plan.id;
            END IF;
            is_written := true;
            IF is_dry AND plan.status IN ('created', 'updated') THEN
                RAISE EXCEPTION 'dry run';
            END IF;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
            -- What is wrong with one job does not keep the others from being imported; what is wrong elsewhere does.
            IF NOT is_written AND state NOT LIKE ALL ('{22%,23%,42%,0A%,54%,55000,53400}') THEN
                RAISE;
            END IF;
            plan.status := CASE WHEN is_written THEN 'would be ' || plan.status ELSE 'refused' END;
            plan.runs_here := plan.runs_here AND is_written;
            -- Of what the caller may not do, the hints are for other functions.
            plan.note := CASE WHEN is_written THEN plan.note WHEN state = '42501' THEN SQLERRM
                              ELSE concat_ws('. ', SQLERRM, nullif(rtrim(hint, '.'), '')) END;
        END;
        -- A job whose action is paused goes on: else nothing would run it.
        IF plan.active AND plan.runs_here AND deactivates AND NOT is_dry THEN
            EXECUTE recur_internal.pg_cron_deactivation() USING plan.jobid;
            GET DIAGNOSTICS changed = ROW_COUNT;
            IF changed <> 1 THEN
                RAISE insufficient_privilege USING MESSAGE = format('job %s can''t be deactivated', plan.jobid),
                    HINT = 'Nothing was imported. Leave deactivate out, or call as a superuser.';
            END IF;
        END IF;
        RETURN QUERY SELECT
            plan.jobid, plan.jobname, plan.action, plan.pg_cron_schedule, plan.schedule, plan.timezone, plan.owner,
            plan.command, plan.active, plan.pg_cron_runs, plan.runs, plan.status,
            recur_internal.pg_cron_note(plan.note, plan.remark, plan.status, plan.active, plan.runs_here, is_dry,
                                        deactivates);
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.import_pg_cron IS
    'Makes an SQL action of each job that pg_cron runs in this database, in namespace cron unless another one is '
    'given, with the next runs there and here side by side; by default it only shows what it would do. Called again, '
    'it updates the actions that it made. Jobs of other databases are listed with what to enter there. Nothing changes '
    'in pg_cron unless deactivate is true';
