-- Claiming: a consumer takes dispatches, and has them for the length of a lease.

-- Most consumers claim for one provider, and must not wade through what another one's have left lying: 200,000 of them
-- took 60 ms a claim, and an insert pays 0.5 µs for the index. "Not running" is the same as "pending" here, but keeps
-- the planner from taking either index for the other.
CREATE INDEX live_dispatches_claimable_of_provider ON recur.live_dispatches (provider, priority DESC, available_at, created_at)
    WHERE status <> 'running';

-- At most one of a group runs.
CREATE FUNCTION recur._group_is_free(lock_group text, id uuid, claim timestamptz) RETURNS boolean
    LANGUAGE c VOLATILE STRICT COST 1000
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'group_is_free_wrapper';
COMMENT ON FUNCTION recur._group_is_free IS
    'Internal: may the claim that began then start this dispatch of the group? If so, no other claim may until the transaction ends';

-- What a session remembers of its last claim: the priority at which it found something, so that the next one needs not look for it.
-- And, if that one has had to walk far, where it found it: while a snapshot is held open, the index keeps an entry for each dispatch
-- that was ever pending.
CREATE FUNCTION recur._known_priority(provider text) RETURNS int
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'known_priority_wrapper';
COMMENT ON FUNCTION recur._known_priority IS 'Internal: the priority at which this session has last found dispatches of the provider';
CREATE FUNCTION recur._know_priority(provider text, priority int) RETURNS void
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'know_priority_wrapper';
COMMENT ON FUNCTION recur._know_priority IS 'Internal: remembers the priority at which dispatches of the provider were found; with NULL, forgets all that is known of it';
CREATE FUNCTION recur._marked_time(provider text) RETURNS timestamptz
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'marked_time_wrapper';
COMMENT ON FUNCTION recur._marked_time IS 'Internal: from when on there are pending dispatches of the priority that is known, as far as this session knows';
CREATE FUNCTION recur._marked_creation(provider text) RETURNS timestamptz
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'marked_creation_wrapper';
COMMENT ON FUNCTION recur._marked_creation IS 'Internal: of those that are available from then on, when the first was written';
CREATE FUNCTION recur._mark_is_worn(provider text) RETURNS boolean
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'mark_is_worn_wrapper';
COMMENT ON FUNCTION recur._mark_is_worn IS 'Internal: is it time to move the mark?';
CREATE FUNCTION recur._is_slow_again(claim timestamptz, "limit" int) RETURNS boolean
    LANGUAGE c VOLATILE STRICT
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'is_slow_again_wrapper';
COMMENT ON FUNCTION recur._is_slow_again IS 'Internal: told that a claim took long, says whether another one did shortly before';
CREATE FUNCTION recur._mark(provider text, priority int, since timestamptz, created timestamptz, claim timestamptz) RETURNS void
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'mark_wrapper';
COMMENT ON FUNCTION recur._mark IS 'Internal: remembers where the pending dispatches of a priority begin';

CREATE FUNCTION recur._move_mark(provider text, priority int, since timestamptz, created timestamptz, claim timestamptz) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET jit = off
AS $$
DECLARE
    next_at      timestamptz;
    next_created timestamptz;
BEGIN
    IF _move_mark.provider IS NULL THEN
        SELECT p.available_at, p.created_at INTO next_at, next_created
          FROM recur.live_dispatches AS p
         WHERE p.status = 'pending' AND p.priority = _move_mark.priority
           AND (p.available_at, p.created_at) >= (_move_mark.since, _move_mark.created) AND p.available_at <= _move_mark.claim
           AND (p.lock_group IS NULL OR NOT EXISTS (SELECT FROM recur.live_dispatches AS r
                                                     WHERE r.lock_group = p.lock_group AND r.status = 'running'))
         ORDER BY p.available_at, p.created_at
         LIMIT 1;
    ELSE
        SELECT p.available_at, p.created_at INTO next_at, next_created
          FROM recur.live_dispatches AS p
         WHERE p.status <> 'running' AND p.provider = _move_mark.provider AND p.priority = _move_mark.priority
           AND (p.available_at, p.created_at) >= (_move_mark.since, _move_mark.created) AND p.available_at <= _move_mark.claim
           AND (p.lock_group IS NULL OR NOT EXISTS (SELECT FROM recur.live_dispatches AS r
                                                     WHERE r.lock_group = p.lock_group AND r.status = 'running'))
         ORDER BY p.available_at, p.created_at
         LIMIT 1;
    END IF;
    -- Where all of them are gone, whatever comes becomes available from now on.
    PERFORM recur._mark(_move_mark.provider, _move_mark.priority, coalesce(next_at, _move_mark.claim),
                        coalesce(next_created, '-infinity'), _move_mark.claim);
END
$$;
COMMENT ON FUNCTION recur._move_mark IS 'Internal: moves the mark, or sets it, to where the dispatches begin that can be claimed now';

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
    at       timestamptz := clock_timestamp();
    wanted   int         := claim."limit";
    claimed  int;
    who      text        := coalesce(claim.consumer, nullif(current_setting('application_name'), ''), session_user::text);
    -- The provider, if it is one.
    single   text        := CASE WHEN cardinality(claim.providers) = 1 THEN claim.providers[1] END;
    plain    boolean     := (claim.providers IS NULL OR single IS NOT NULL) AND claim.action_types IS NULL
                            AND claim.namespaces IS NULL AND claim.tenants IS NULL;
    -- Priorities are visited one by one, from the highest on: the next is the highest one below this.
    below    bigint      := 2147483648;
    above    bigint;
    -- But first the one at which this session has last found something, if it is still the highest.
    guess    int         := CASE WHEN plain THEN recur._known_priority(single) END;
    guessed  boolean     := guess IS NOT NULL;
    level    int         := guess;
    highest  int;
    -- And there from its mark on, if that is far from where one would begin.
    mark     timestamptz := CASE WHEN guessed THEN recur._marked_time(single) END;
    marked   boolean     := mark IS NOT NULL;
    since    timestamptz;
    created  timestamptz;
    began    timestamptz;
BEGIN
    IF claim."limit" IS NULL OR claim."limit" < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid limit "%s": must be at least 1', coalesce(claim."limit"::text, 'NULL'));
    END IF;
    IF claim.lease <= interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid lease "%s": must be longer than nothing', claim.lease),
            HINT = 'Give it as long as the work may take; recur.extend is for work that takes longer.';
    ELSIF claim.lease IS NOT NULL THEN
        PERFORM recur._check_interval('lease', claim.lease, false);
    END IF;
    LOOP
        IF level IS NULL THEN
            -- Not at the priority that has a mark: what is dead there would be walked past after all.
            above := CASE WHEN marked AND guess < below THEN guess ELSE -2147483649 END;
            IF single IS NULL THEN
                SELECT h.priority INTO level FROM recur.live_dispatches AS h
                 WHERE h.status = 'pending' AND h.priority < below AND h.priority > above ORDER BY h.priority DESC LIMIT 1;
            ELSE
                SELECT h.priority INTO level FROM recur.live_dispatches AS h
                 WHERE h.status <> 'running' AND h.provider = single AND h.priority < below AND h.priority > above
                 ORDER BY h.priority DESC LIMIT 1;
            END IF;
            IF level IS NULL AND marked AND guess < below THEN
                level := guess;
            END IF;
            EXIT WHEN level IS NULL;
            IF highest IS NULL THEN
                highest := level;
                -- A mark outlives what is more urgent, but not that too little was found behind it.
                IF marked AND highest <= guess THEN
                    PERFORM recur._know_priority(single, NULL);
                    marked := false;
                END IF;
            END IF;
        END IF;
        since := '-infinity';
        created := '-infinity';
        IF marked AND level = guess THEN
            since := mark;
            created := recur._marked_creation(single);
        END IF;
        began := clock_timestamp();
        -- Within a priority the index is in order of time: the scan stops where the future begins, however much of it
        -- there is. Rows that somebody else has locked are his.
        -- The statement stands here twice, for one provider and for others, because a plan that is kept has one index.
        IF single IS NULL THEN
            RETURN QUERY
            WITH claimed AS (
                UPDATE recur.live_dispatches AS l
                   SET status = 'running', attempt = l.attempt + 1, claimed_by = who, started_at = at, cancel_requested = false,
                       lease_expires_at = clock_timestamp() + least(coalesce(claim.lease, l.lease, interval '5 minutes'), interval '100 years'),
                       (context, context_version) = (SELECT p.context, p.context_version FROM recur.progress AS p
                                                      WHERE p.action_id = l.action_id)
                 WHERE l.id = ANY (ARRAY(
                    SELECT p.id
                      FROM recur.live_dispatches AS p
                     WHERE p.status = 'pending' AND (p.available_at, p.created_at) >= (since, created) AND p.available_at <= at
                       AND p.priority = level
                       -- In this order, and not as EXISTS, where the planner may read another index from end to end.
                       AND (NOT guessed OR (SELECT h.priority FROM recur.live_dispatches AS h
                                             WHERE h.status = 'pending' AND h.priority > level
                                             ORDER BY h.priority DESC LIMIT 1) IS NULL)
                       AND (claim.providers IS NULL OR p.provider = ANY (claim.providers))
                       AND (claim.action_types IS NULL OR p.action_type = ANY (claim.action_types))
                       AND (claim.namespaces IS NULL OR p.namespace = ANY (claim.namespaces))
                       AND (claim.tenants IS NULL OR p.tenant = ANY (claim.tenants))
                       AND (p.lock_group IS NULL OR recur._group_is_free(p.lock_group, p.id, at))
                     ORDER BY p.available_at, p.created_at
                     LIMIT wanted
                       FOR UPDATE SKIP LOCKED))
                RETURNING l.*
            )
            SELECT c.* FROM claimed AS c ORDER BY c.available_at, c.created_at, c.id;
        ELSE
            RETURN QUERY
            WITH claimed AS (
                UPDATE recur.live_dispatches AS l
                   SET status = 'running', attempt = l.attempt + 1, claimed_by = who, started_at = at, cancel_requested = false,
                       lease_expires_at = clock_timestamp() + least(coalesce(claim.lease, l.lease, interval '5 minutes'), interval '100 years'),
                       (context, context_version) = (SELECT p.context, p.context_version FROM recur.progress AS p
                                                      WHERE p.action_id = l.action_id)
                 WHERE l.id = ANY (ARRAY(
                    SELECT p.id
                      FROM recur.live_dispatches AS p
                     WHERE p.status <> 'running' AND p.provider = single
                       AND (p.available_at, p.created_at) >= (since, created) AND p.available_at <= at
                       AND p.priority = level
                       AND (NOT guessed OR (SELECT h.priority FROM recur.live_dispatches AS h
                                             WHERE h.status <> 'running' AND h.provider = single AND h.priority > level
                                             ORDER BY h.priority DESC LIMIT 1) IS NULL)
                       AND (claim.action_types IS NULL OR p.action_type = ANY (claim.action_types))
                       AND (claim.namespaces IS NULL OR p.namespace = ANY (claim.namespaces))
                       AND (claim.tenants IS NULL OR p.tenant = ANY (claim.tenants))
                       AND (p.lock_group IS NULL OR recur._group_is_free(p.lock_group, p.id, at))
                     ORDER BY p.available_at, p.created_at
                     LIMIT wanted
                       FOR UPDATE SKIP LOCKED))
                RETURNING l.*
            )
            SELECT c.* FROM claimed AS c ORDER BY c.available_at, c.created_at, c.id;
        END IF;
        GET DIAGNOSTICS claimed = ROW_COUNT;
        wanted := wanted - claimed;
        -- Far to walk?
        IF plain AND claimed > 0
           AND (CASE WHEN since > '-infinity' THEN recur._mark_is_worn(single)
                     WHEN clock_timestamp() - began > interval '0.5 ms' + claim."limit" * interval '0.03 ms'
                     THEN recur._is_slow_again(began, claim."limit") END) THEN
            PERFORM recur._move_mark(single, level, since, created, began);
            guess := level;
            marked := true;
            mark := recur._marked_time(single);
        END IF;
        EXIT WHEN wanted = 0;
        IF guessed THEN
            -- Too little there, or there is something more urgent: from the highest priority on.
            guessed := false;
            level := NULL;
        ELSIF since > '-infinity' THEN
            -- Too little behind the mark: the same priority, all of it.
            PERFORM recur._know_priority(single, NULL);
            marked := false;
        ELSE
            below := level;
            level := NULL;
        END IF;
    END LOOP;
    IF plain AND NOT guessed AND NOT marked THEN
        PERFORM recur._know_priority(single, CASE WHEN wanted = 0 AND level = highest THEN level END);
    END IF;
END
$$;
COMMENT ON FUNCTION recur.claim IS
    'Takes up to "limit" pending dispatches for this consumer; each is to be reported on before its lease expires';
