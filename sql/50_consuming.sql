-- Claiming: a consumer takes dispatches, and has them for the length of a lease.

-- Most consumers claim for one provider, and must not wade through what another one's have left lying: 200,000 of them
-- took 60 ms a claim, and an insert pays 0.5 µs for the index. "Not running" is the same as "pending" here, but keeps
-- the planner from taking either index for the other.
CREATE INDEX live_dispatches_claimable_of_provider ON recur.live_dispatches (provider, priority DESC, available_at)
    WHERE status <> 'running';

-- At most one of a group runs. Two claims that look at the same time could both find that none does, so each claim
-- first takes the group's lock; it has it until its transaction ends, when the row says all that the lock said. A claim
-- that does not get the lock leaves the group to the one that has it. Runs as the extension's owner because the one
-- that runs may belong to somebody else.
CREATE FUNCTION recur._group_is_free(lock_group text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER COST 1000
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(_group_is_free.lock_group, 'recur.live_dispatches'::regclass::oid::bigint)) THEN
        RETURN false;
    END IF;
    -- A statement of its own: its snapshot is taken when the lock is held, and sees what the last holder did.
    RETURN NOT EXISTS (SELECT FROM recur.live_dispatches AS l
                        WHERE l.lock_group = _group_is_free.lock_group AND l.status = 'running');
END
$$;
COMMENT ON FUNCTION recur._group_is_free IS 'Internal: may this transaction start a dispatch of the group? If so, nobody else may until it ends';

CREATE FUNCTION recur.claim(
    "limit"      int      DEFAULT 1,
    providers    text[]   DEFAULT NULL,
    action_types text[]   DEFAULT NULL,
    namespaces   text[]   DEFAULT NULL,
    tenants      text[]   DEFAULT NULL,
    lease        interval DEFAULT NULL,
    consumer     text     DEFAULT NULL
) RETURNS SETOF recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    -- One plan, made once, that is right for an empty table and for a full one. The planner would rather make another
    -- for each call, which takes longer than the call, or compile this one, which takes half a second.
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET jit = off
AS $$
DECLARE
    at      timestamptz := clock_timestamp();
    wanted  int         := claim."limit";
    seen    int;
    chosen  uuid[];
    -- The provider, if it is one.
    single  text        := CASE WHEN cardinality(claim.providers) = 1 THEN claim.providers[1] END;
BEGIN
    IF claim."limit" IS NULL OR claim."limit" < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid limit "%s": must be at least 1', coalesce(claim."limit"::text, 'NULL'));
    END IF;
    IF claim.lease <= interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid lease "%s": must be longer than nothing', claim.lease),
            HINT = 'Give it as long as the work may take; recur.extend is for work that takes longer.';
    END IF;
    LOOP
        -- Priorities are visited one by one, from the highest on. Within one the index is in order of time: the scan
        -- stops where the future begins, however much of it there is. Rows that somebody else has locked are his.
        IF single IS NULL THEN
            WITH RECURSIVE levels (priority) AS (
                (SELECT p.priority FROM recur.live_dispatches AS p WHERE p.status = 'pending' ORDER BY p.priority DESC LIMIT 1)
                UNION ALL
                SELECT (SELECT p.priority FROM recur.live_dispatches AS p
                         WHERE p.status = 'pending' AND p.priority < l.priority ORDER BY p.priority DESC LIMIT 1)
                  FROM levels AS l WHERE l.priority IS NOT NULL
            ), locked AS (
                SELECT c.*
                  FROM levels AS l,
               LATERAL (SELECT p.id, p.lock_group, p.priority, p.available_at
                          FROM recur.live_dispatches AS p
                         WHERE p.status = 'pending' AND p.priority = l.priority AND p.available_at <= at
                           AND (claim.providers IS NULL OR p.provider = ANY (claim.providers))
                           AND (claim.action_types IS NULL OR p.action_type = ANY (claim.action_types))
                           AND (claim.namespaces IS NULL OR p.namespace = ANY (claim.namespaces))
                           AND (claim.tenants IS NULL OR p.tenant = ANY (claim.tenants))
                           -- Those of busy groups are passed over by a list that is made once; only of the others is it
                           -- worth asking what has happened since.
                           AND (p.lock_group IS NULL
                                OR p.lock_group NOT IN (SELECT r.lock_group FROM recur.live_dispatches AS r
                                                         WHERE r.status = 'running' AND r.lock_group IS NOT NULL)
                                   AND recur._group_is_free(p.lock_group))
                         ORDER BY p.available_at
                           FOR UPDATE SKIP LOCKED) AS c
                 LIMIT wanted
            )
            SELECT count(*), array_agg(k.id) FILTER (WHERE k.lock_group IS NULL OR k.turn = 1)
              INTO seen, chosen
              FROM (SELECT o.id, o.lock_group,
                           row_number() OVER (PARTITION BY o.lock_group ORDER BY o.priority DESC, o.available_at, o.id) AS turn
                      FROM locked AS o) AS k;
        ELSE
            WITH RECURSIVE levels (priority) AS (
                (SELECT p.priority FROM recur.live_dispatches AS p
                  WHERE p.status <> 'running' AND p.provider = single ORDER BY p.priority DESC LIMIT 1)
                UNION ALL
                SELECT (SELECT p.priority FROM recur.live_dispatches AS p
                         WHERE p.status <> 'running' AND p.provider = single AND p.priority < l.priority
                         ORDER BY p.priority DESC LIMIT 1)
                  FROM levels AS l WHERE l.priority IS NOT NULL
            ), locked AS (
                SELECT c.*
                  FROM levels AS l,
               LATERAL (SELECT p.id, p.lock_group, p.priority, p.available_at
                          FROM recur.live_dispatches AS p
                         WHERE p.status <> 'running' AND p.provider = single AND p.priority = l.priority AND p.available_at <= at
                           AND (claim.action_types IS NULL OR p.action_type = ANY (claim.action_types))
                           AND (claim.namespaces IS NULL OR p.namespace = ANY (claim.namespaces))
                           AND (claim.tenants IS NULL OR p.tenant = ANY (claim.tenants))
                           AND (p.lock_group IS NULL
                                OR p.lock_group NOT IN (SELECT r.lock_group FROM recur.live_dispatches AS r
                                                         WHERE r.status = 'running' AND r.lock_group IS NOT NULL)
                                   AND recur._group_is_free(p.lock_group))
                         ORDER BY p.available_at
                           FOR UPDATE SKIP LOCKED) AS c
                 LIMIT wanted
            )
            SELECT count(*), array_agg(k.id) FILTER (WHERE k.lock_group IS NULL OR k.turn = 1)
              INTO seen, chosen
              FROM (SELECT o.id, o.lock_group,
                           row_number() OVER (PARTITION BY o.lock_group ORDER BY o.priority DESC, o.available_at, o.id) AS turn
                      FROM locked AS o) AS k;
        END IF;
        EXIT WHEN seen = 0;

        -- An old snapshot hides what has started since; the index does not.
        IF current_setting('transaction_isolation') NOT LIKE 'read%' THEN
            BEGIN
                UPDATE recur.live_dispatches AS l SET status = 'running' WHERE l.id = ANY (chosen) AND l.lock_group IS NOT NULL;
            EXCEPTION WHEN unique_violation THEN
                RAISE serialization_failure USING
                    MESSAGE = 'could not serialize access: another dispatch of a lock group has started',
                    HINT = 'Try the transaction again.';
            END;
        END IF;
        RETURN QUERY
        WITH claimed AS (
            UPDATE recur.live_dispatches AS l
               SET status = 'running',
                   attempt = l.attempt + 1,
                   claimed_by = coalesce(claim.consumer, nullif(current_setting('application_name'), ''), session_user::text),
                   started_at = at,
                   lease_expires_at = clock_timestamp() + coalesce(claim.lease, l.lease, interval '5 minutes'),
                   cancel_requested = false,
                   (context, context_version) = (SELECT p.context, p.context_version FROM recur.progress AS p
                                                  WHERE p.action_id = l.action_id)
             WHERE l.id = ANY (chosen)
            RETURNING l.*
        )
        SELECT c.* FROM claimed AS c ORDER BY c.priority DESC, c.available_at, c.id;

        -- A batch is not short only because its first rows share a group.
        EXIT WHEN seen < wanted OR cardinality(chosen) = wanted;
        wanted := wanted - cardinality(chosen);
    END LOOP;
END
$$;
COMMENT ON FUNCTION recur.claim IS
    'Takes up to "limit" pending dispatches for this consumer; each is to be reported on before its lease expires';
