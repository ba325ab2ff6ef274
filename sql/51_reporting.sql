-- Reporting: what became of a claimed dispatch.
--
-- The attempt number fences. A consumer that was given up on, because its lease expired, can't speak for the one that
-- took over: its report is refused, with an SQLSTATE of its own (RC001), and changes nothing.
--
-- "Not pending" is said instead of "running": to the planner, whose numbers are old, the index of those that run looks
-- shorter than the primary key, and each report would read all of it.
--
-- And plans are kept: one that was made while the table was small must be right when it is large, hence no sequential scans
-- (nor compiled plans, which take longer than any report).
--
-- Locks are taken in one order everywhere: dispatches by id, then recur.progress by action.

-- What a dispatch is now, for a report that was not accepted.
CREATE FUNCTION recur._standing(id uuid, attempt int, OUT status text, OUT problem text, OUT detail text)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    dispatch recur.dispatches;
BEGIN
    SELECT d.* INTO dispatch FROM recur.dispatches AS d WHERE d.id = _standing.id;
    IF NOT FOUND THEN
        problem := format('no dispatch has the id %s', coalesce(_standing.id::text, 'NULL'));
        RETURN;
    END IF;
    status := dispatch.status;
    problem := format('attempt %s of dispatch %s is not running', coalesce(_standing.attempt::text, 'NULL'), dispatch.id);
    detail := CASE
        WHEN dispatch.status = 'pending' AND dispatch.attempt = 0 THEN 'It is pending and has not been claimed yet.'
        WHEN dispatch.status = 'pending' THEN format('It is pending again, after attempt %s.', dispatch.attempt)
        WHEN dispatch.status = 'running' AND dispatch.attempt = _standing.attempt
            THEN format('Its lease expired at %s.', dispatch.lease_expires_at)
        ELSE format('It is %s, at attempt %s.', dispatch.status, dispatch.attempt)
    END;
END
$$;
COMMENT ON FUNCTION recur._standing IS 'Internal: why a report of an attempt is not accepted';

CREATE FUNCTION recur._refuse_report(id uuid, attempt int) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    standing record;
BEGIN
    SELECT s.* INTO standing FROM recur._standing(_refuse_report.id, _refuse_report.attempt) AS s;
    IF standing.status IS NULL THEN
        RAISE no_data_found USING MESSAGE = standing.problem;
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'RC001',
        MESSAGE = standing.problem,
        DETAIL = standing.detail,
        HINT = 'Drop the work of this attempt: another one counts, or none.';
END
$$;
COMMENT ON FUNCTION recur._refuse_report IS 'Internal: raises why a report of an attempt is not accepted';

-- Moves dispatches, which the caller has locked, to the history, and counts them.
CREATE FUNCTION recur._finish(ids uuid[], outcome text, results jsonb[] DEFAULT NULL, reasons text[] DEFAULT NULL)
    RETURNS SETOF recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    at        timestamptz := clock_timestamp();
    threshold int         := coalesce(nullif(current_setting('recur.error_threshold', true), '')::int, 3);
    troubled  uuid[];
    action    uuid;
BEGIN
    IF _finish.outcome <> 'cancelled' THEN
        WITH counts AS (
            SELECT l.action_id, count(*)::int AS number
              FROM recur.live_dispatches AS l
             WHERE l.id = ANY (_finish.ids) AND l.action_id IS NOT NULL
             GROUP BY l.action_id
        ), locked AS (
            SELECT p.action_id, c.number
              FROM recur.progress AS p JOIN counts AS c ON c.action_id = p.action_id
             ORDER BY p.action_id
               FOR UPDATE OF p
        ), counted AS (
            UPDATE recur.progress AS p
               SET completed_count = p.completed_count + CASE _finish.outcome WHEN 'completed' THEN k.number ELSE 0 END,
                   failed_count = p.failed_count + CASE _finish.outcome WHEN 'failed' THEN k.number ELSE 0 END,
                   failed_in_a_row = CASE _finish.outcome WHEN 'failed' THEN p.failed_in_a_row + k.number ELSE 0 END
              FROM locked AS k
             WHERE p.action_id = k.action_id
            RETURNING p.action_id, p.failed_in_a_row, k.number
        )
        SELECT array_agg(c.action_id) INTO troubled
          FROM counted AS c
         WHERE c.failed_in_a_row >= threshold AND c.failed_in_a_row - c.number < threshold;
    END IF;

    -- recur.finished_dispatches has the columns of recur.live_dispatches in their order, and its partition behind them.
    RETURN QUERY
    WITH gone AS (
        DELETE FROM recur.live_dispatches AS l
         USING unnest(_finish.ids, _finish.results, _finish.reasons) AS u (id, result, reason)
         WHERE l.id = u.id
        RETURNING l.id, l.action_id, l.scheduled_at, l.trigger, l.namespace, l.tenant, l.owner, l.subject, l.provider,
                  l.action_type, l.payload, l.raw_payload, l.metadata, l.dedup_key, l.context, l.context_version,
                  l.primary_agent, l.fallback_agent, l.priority, l.lock_group, l.notify_channel, _finish.outcome,
                  l.attempt, l.releases, l.max_attempts, l.retry_backoff, l.lease, l.available_at, l.claimed_by,
                  NULL::timestamptz, l.started_at, at AS finished_at, l.cancel_requested, u.result,
                  coalesce(u.reason, l.error) AS error,
                  CASE _finish.outcome WHEN 'failed'
                       THEN coalesce(l.errors, '[]') || jsonb_build_object('attempt', l.attempt, 'at', at, 'reason', u.reason)
                       ELSE l.errors END,
                  l.created_at
    ), kept AS (
        INSERT INTO recur.finished_dispatches
        SELECT g.*, (SELECT recur._history_partition())
          FROM gone AS g
          LEFT JOIN recur.definitions AS d ON d.id = g.action_id
         WHERE d.keep_history IS NULL OR d.keep_history = 'all'
            OR (d.keep_history = 'failures' AND _finish.outcome <> 'completed')
    )
    SELECT g.* FROM gone AS g;

    FOREACH action IN ARRAY coalesce(troubled, '{}') LOOP
        PERFORM recur._tell_contact(action, format('%s dispatches in a row have failed', threshold));
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur._finish IS 'Internal: moves dispatches that are over to the history';

-- The most frequent report, hence a statement of its own.
CREATE FUNCTION recur.complete(id uuid, attempt int, result jsonb DEFAULT NULL, context jsonb DEFAULT NULL)
    RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    done         record;
    version_left int;
BEGIN
    IF complete.context IS NOT NULL AND jsonb_typeof(complete.context) <> 'object' THEN
        PERFORM recur._check_object('context', complete.context);
    END IF;
    WITH gone AS (
        DELETE FROM recur.live_dispatches AS l
         WHERE l.id = complete.id AND l.status <> 'pending' AND l.attempt = complete.attempt
           AND l.lease_expires_at > clock_timestamp()
        RETURNING l.id, l.action_id, l.scheduled_at, l.trigger, l.namespace, l.tenant, l.owner, l.subject, l.provider,
                  l.action_type, l.payload, l.raw_payload, l.metadata, l.dedup_key, l.context, l.context_version,
                  l.primary_agent, l.fallback_agent, l.priority, l.lock_group, l.notify_channel, 'completed'::text,
                  l.attempt, l.releases, l.max_attempts, l.retry_backoff, l.lease, l.available_at, l.claimed_by,
                  NULL::timestamptz, l.started_at, clock_timestamp(), l.cancel_requested, complete.result, l.error,
                  l.errors, l.created_at
    ), kept AS (
        INSERT INTO recur.finished_dispatches
        SELECT g.*, (SELECT recur._history_partition())
          FROM gone AS g
         WHERE coalesce((SELECT d.keep_history FROM recur.definitions AS d WHERE d.id = g.action_id), 'all') = 'all'
    )
    SELECT ROW(g.*)::recur.dispatches AS dispatch, g.action_id, g.context_version AS version_read
      INTO done
      FROM gone AS g;
    IF NOT FOUND THEN
        PERFORM recur._refuse_report(complete.id, complete.attempt);
    END IF;
    IF done.action_id IS NOT NULL THEN
        UPDATE recur.progress AS p
           SET completed_count = p.completed_count + 1,
               failed_in_a_row = 0,
               context = coalesce(complete.context, p.context),
               context_version = p.context_version + (complete.context IS NOT NULL)::int,
               context_left_by = CASE WHEN complete.context IS NULL THEN p.context_left_by ELSE complete.id END
         WHERE p.action_id = done.action_id
        RETURNING p.context_version INTO version_left;
    END IF;
    IF complete.context IS NOT NULL AND version_left <> done.version_read + 1 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'RC002',
            MESSAGE = format('the context of dispatch %s has changed since it was claimed', complete.id),
            DETAIL = format('It was claimed with version %s, and the action has version %s.', done.version_read, version_left - 1),
            HINT = 'Report a failure, so that it is tried again with the new context, or complete it without one.';
    END IF;
    RETURN done.dispatch;
END
$$;
COMMENT ON FUNCTION recur.complete IS
    'Reports that a claimed dispatch has been done; a context is left for the next run, if no other has left one since the claim';

-- base * factor ^ (attempts used - 1), not above cap, and up to a tenth less or more: those that failed together do not
-- come back together. The same attempt of the same dispatch always waits as long. A hundred years at the most, whatever is
-- stored: one that can't be waited for would make the reports on all others of a batch fail.
CREATE FUNCTION recur._retry_delay(backoff jsonb, used int, id uuid, attempt int) RETURNS interval
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT make_interval(secs =>
        least(extract(epoch FROM (p.policy ->> 'base')::interval)::float8
                  * power((p.policy ->> 'factor')::float8, least(greatest(_retry_delay.used - 1, 0), 50)),
              extract(epoch FROM (p.policy ->> 'cap')::interval)::float8,
              extract(epoch FROM interval '100 years')::float8)
        * (0.9 + 0.2 * (uuid_hash_extended(_retry_delay.id, _retry_delay.attempt) & 65535) / 65535.0))
      FROM (SELECT coalesce(_retry_delay.backoff, '{"base": "30 seconds", "factor": 2, "cap": "1 hour"}') AS policy) AS p
$$;
COMMENT ON FUNCTION recur._retry_delay IS 'Internal: how long a dispatch waits before it is tried again';

-- Lets dispatches, which the caller has locked and which have attempts left, be tried again after their pause.
CREATE FUNCTION recur._try_again(ids uuid[], reasons text[]) RETURNS SETOF recur.dispatches
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
    UPDATE recur.live_dispatches AS l
       SET status = 'pending',
           available_at = clock_timestamp() + recur._retry_delay(
               coalesce(l.retry_backoff, (SELECT d.retry_backoff FROM recur.definitions AS d WHERE d.id = l.action_id)),
               l.attempt - l.releases, l.id, l.attempt),
           lease_expires_at = NULL,
           error = u.reason,
           errors = coalesce(l.errors, '[]') || jsonb_build_object('attempt', l.attempt, 'at', clock_timestamp(), 'reason', u.reason)
      FROM unnest(_try_again.ids, _try_again.reasons) AS u (id, reason)
     WHERE l.id = u.id
    RETURNING l.*
$$;
COMMENT ON FUNCTION recur._try_again IS 'Internal: lets dispatches that have failed be tried again later';

CREATE FUNCTION recur.fail(id uuid, attempt int, reason text, retry boolean DEFAULT true) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    running  recur.live_dispatches;
    dispatch recur.dispatches;
    why      text := coalesce(fail.reason, 'no reason given');
BEGIN
    SELECT l.* INTO running
      FROM recur.live_dispatches AS l
     WHERE l.id = fail.id AND l.status <> 'pending' AND l.attempt = fail.attempt AND l.lease_expires_at > clock_timestamp()
       FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM recur._refuse_report(fail.id, fail.attempt);
    END IF;
    IF running.cancel_requested THEN
        SELECT f.* INTO dispatch FROM recur._finish(ARRAY[fail.id], 'cancelled', NULL, ARRAY[why]) AS f;
    ELSIF fail.retry AND running.attempt - running.releases < running.max_attempts THEN
        SELECT t.* INTO dispatch FROM recur._try_again(ARRAY[fail.id], ARRAY[why]) AS t;
    ELSE
        SELECT f.* INTO dispatch FROM recur._finish(ARRAY[fail.id], 'failed', NULL, ARRAY[why]) AS f;
    END IF;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.fail IS
    'Reports that an attempt has failed; the dispatch is tried again later while it has attempts left, unless retry is false';

CREATE FUNCTION recur.extend(id uuid, attempt int, lease interval DEFAULT NULL) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    dispatch recur.dispatches;
BEGIN
    IF extend.lease <= interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid lease "%s": must be longer than nothing', extend.lease),
            HINT = 'recur.release gives a dispatch back.';
    ELSIF extend.lease IS NOT NULL THEN
        PERFORM recur._check_interval('lease', extend.lease, false);
    END IF;
    -- A lease that was not asked for shortens none that was.
    UPDATE recur.live_dispatches AS l
       SET lease_expires_at = CASE WHEN extend.lease IS NOT NULL THEN clock_timestamp() + extend.lease
           ELSE greatest(l.lease_expires_at,
                         clock_timestamp() + least(coalesce(l.lease, interval '5 minutes'), interval '100 years')) END
     WHERE l.id = extend.id AND l.status <> 'pending' AND l.attempt = extend.attempt AND l.lease_expires_at > clock_timestamp()
    RETURNING l.* INTO dispatch;
    IF NOT FOUND THEN
        PERFORM recur._refuse_report(extend.id, extend.attempt);
    END IF;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.extend IS
    'Renews the lease of a claimed dispatch from now on; cancel_requested of the row says whether somebody wants the run to stop';

CREATE FUNCTION recur.release(id uuid, attempt int) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    dispatch recur.dispatches;
BEGIN
    UPDATE recur.live_dispatches AS l
       SET status = 'pending', available_at = clock_timestamp(), lease_expires_at = NULL, releases = l.releases + 1
     WHERE l.id = release.id AND l.status <> 'pending' AND l.attempt = release.attempt AND l.lease_expires_at > clock_timestamp()
    RETURNING l.* INTO dispatch;
    IF NOT FOUND THEN
        PERFORM recur._refuse_report(release.id, release.attempt);
    END IF;
    IF dispatch.cancel_requested THEN
        SELECT f.* INTO dispatch FROM recur._finish(ARRAY[release.id], 'cancelled') AS f;
    ELSE
        PERFORM recur._announce(ARRAY[release.id]);
    END IF;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.release IS
    'Gives a claimed dispatch back, undone: anybody can claim it at once, and the attempt does not count';
