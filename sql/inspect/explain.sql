-- Why an action fired at an instant, or did not.

CREATE FUNCTION recur_internal.explain_dispatch(dispatch recur.dispatches, is_ahead boolean) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('dispatched by %s %s; it is %s%s%s', dispatch.trigger,
                  CASE WHEN dispatch.created_at >= dispatch.scheduled_at
                       THEN recur_internal.ago(dispatch.created_at - dispatch.scheduled_at) || ' late'
                       WHEN is_ahead THEN 'ahead of its time'
                       ELSE 'on time' END,
                  dispatch.status,
                  CASE WHEN dispatch.attempt > 0 THEN format(' after %s attempt(s)', dispatch.attempt) END,
                  ': ' || dispatch.error)
        || CASE WHEN dispatch.status = 'pending' AND dispatch.primary_agent IS NOT NULL
                THEN format('; it waits for a claim as agent "%s"', dispatch.primary_agent)
                     || CASE WHEN dispatch.fallback_agent IS NULL THEN ''
                             WHEN dispatch.attempt > dispatch.releases
                             THEN format(', or as its fallback "%s", because an attempt has failed',
                                         dispatch.fallback_agent)
                             ELSE format(', or from %s on as its fallback "%s"',
                                         dispatch.available_at + dispatch.fallback_after, dispatch.fallback_agent) END
                ELSE '' END
$$;
COMMENT ON FUNCTION recur_internal.explain_dispatch IS
    'Internal: what has become of a dispatch; is_ahead says whether its action has a horizon';

CREATE FUNCTION recur_internal.explain_skip(detail jsonb) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE detail ->> 'reason'
               WHEN 'misfire' THEN 'it was missed, and by the misfire policy it was not made up for'
               WHEN 'overlap' THEN 'an earlier dispatch was unfinished, and by the overlap policy it gave way; one '
                                   'that waits for its retry counts for an hour after its occurrence'
               WHEN 'max_runs' THEN 'the runs under way may be the last that max_runs allows'
               WHEN 'duplicate' THEN format('a dispatch with the same dedup_key, %s, was pending, and the occurrence '
                                            'was skipped', detail ->> 'dispatch_id')
               WHEN 'merged' THEN format('a dispatch with the same dedup_key, %s, was pending, and took over the '
                                         'payload', detail ->> 'dispatch_id')
               WHEN 'paused' THEN 'the action was paused'
               ELSE coalesce(detail ->> 'reason', 'no reason was recorded') END
           || CASE WHEN (detail ->> 'count')::bigint > 1
                   THEN format(' (one of %s, from %s to %s)', detail ->> 'count', detail ->> 'from', detail ->> 'until')
                   ELSE '' END
$$;
COMMENT ON FUNCTION recur_internal.explain_skip IS 'Internal: the reason of an occurrence.skipped event in words';

-- The current schedule has no occurrence at the instant; an earlier schedule of the action may have had one.
CREATE FUNCTION recur_internal.explain_absence(
    action recur.recurring_actions, at timestamptz, previous timestamptz, next timestamptz,
    OUT explanation text, OUT event_id bigint
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    event recur.events;
BEGIN
    explanation := CASE
        WHEN explain_absence.at < action.starts_at
        THEN format('the action starts only at %s%s', action.starts_at,
                    '; its first occurrence is ' || nullif(explain_absence.next, action.starts_at))
        WHEN explain_absence.at > action.ends_at
        THEN format('the action ended at %s%s', action.ends_at,
                    '; its last occurrence was ' || nullif(explain_absence.previous, action.ends_at))
        ELSE format('%s has no occurrence then%s%s', recur.describe(action.schedule, action.timezone),
                    '; the one before is ' || explain_absence.previous,
                    '; the one after is ' || explain_absence.next)
    END;
    SELECT e.* INTO event FROM recur.events AS e
     WHERE e.action_id = action.id AND e.kind = 'action.updated' AND e.at > explain_absence.at
       AND e.detail -> 'new' ?| ARRAY['schedule', 'timezone', 'starts_at', 'ends_at', 'on_dst_gap', 'on_dst_fold']
     ORDER BY e.id LIMIT 1;
    IF FOUND THEN
        event_id := event.id;
        explanation := explanation
            || format('; but it was rescheduled at %s, from %s', event.at, event.detail -> 'old');
    END IF;
END
$$;
COMMENT ON FUNCTION recur_internal.explain_absence IS
    'Internal: why an action has no occurrence at an instant, with the event that changed it';

-- The schedule has an occurrence at the instant, and there is neither a dispatch nor an event for it.
CREATE FUNCTION recur_internal.explain_occurrence(
    action recur.recurring_actions, at timestamptz,
    OUT verdict text, OUT explanation text, OUT event_id bigint
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    is_future boolean := explain_occurrence.at > recur.clock();
    event     recur.events;
BEGIN
    IF explain_occurrence.at < action.created_at
       AND explain_occurrence.at < coalesce(action.next_run_at, 'infinity') THEN
        verdict := 'never existed';
        explanation := format('the action was created later, at %s', action.created_at);
    ELSIF NOT action.enabled AND action.ended_reason IS NOT NULL THEN
        verdict := 'never existed';
        explanation := format('the action has ended: %s', action.ended_reason);
    ELSIF NOT action.enabled THEN
        verdict := CASE WHEN is_future THEN 'to come' ELSE 'skipped' END;
        explanation := format('the action is paused%s%s', ': ' || action.paused_reason,
                              CASE WHEN is_future THEN '; unless it is resumed before, nothing fires' END);
    ELSIF action.next_run_at IS NULL AND is_future THEN
        verdict := 'never existed';
        explanation := 'all occurrences have been dispatched: the action ends when its last run is over';
    ELSIF explain_occurrence.at >= action.next_run_at AND NOT is_future THEN
        verdict := 'due';
        explanation := CASE WHEN action.error_count > 0
            THEN format('it is due, but could not be dispatched: %s', action.last_error)
            ELSE 'it is due and not dispatched yet; '
                 'recur.doctor() tells whether something keeps the workers from it' END;
    ELSIF explain_occurrence.at >= action.next_run_at THEN
        verdict := 'to come';
        explanation := CASE WHEN explain_occurrence.at = action.next_run_at THEN 'it is the next one'
                            ELSE format('the next one is at %s', action.next_run_at) END;
    ELSE
        verdict := 'unknown';
        explanation := 'its dispatch or its event is no longer kept, '
                       'or the action was rescheduled or paused around that time';
        SELECT e.* INTO event FROM recur.events AS e
         WHERE e.action_id = action.id AND e.kind IN ('action.updated', 'action.resumed')
           AND e.at >= explain_occurrence.at
         ORDER BY e.id LIMIT 1;
        IF FOUND THEN
            event_id := event.id;
            verdict := 'skipped';
            explanation := format('%s at %s: from then on it is counted anew', replace(event.kind, '.', ' was '),
                                  event.at);
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION recur_internal.explain_occurrence IS
    'Internal: what the state of an action says of an occurrence that left no trace';

CREATE FUNCTION recur.explain(
    id uuid,
    at timestamptz,
    OUT verdict text,
    OUT explanation text,
    OUT dispatch_id uuid,
    OUT event_id bigint
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action   recur.recurring_actions;
    dispatch recur.dispatches;
    event    recur.events;
    around   record;
    exact    boolean;
    known    uuid := recur_internal.action_id(explain.id::text, NULL, NULL, NULL);
    instant  timestamptz := recur_internal.checked_instant('at', explain.at);
BEGIN
    SELECT a.* INTO action FROM recur.recurring_actions AS a WHERE a.id = known;
    SELECT d.* INTO dispatch FROM recur.dispatches AS d
     WHERE d.action_id = action.id AND d.scheduled_at = instant
     ORDER BY d.created_at LIMIT 1;
    IF FOUND THEN
        verdict := CASE WHEN dispatch.scheduled_at > recur.clock() THEN 'to come' ELSE 'fired' END;
        explanation := recur_internal.explain_dispatch(
            dispatch, action.horizon IS NOT NULL OR action.horizon_count IS NOT NULL);
        dispatch_id := dispatch.id;
        -- Was somebody notified because of this failure?
        SELECT e.* INTO event FROM recur.events AS e
         WHERE e.action_id = action.id AND e.dispatch_id = dispatch.id AND e.kind = 'owner.notified'
         ORDER BY e.id DESC LIMIT 1;
        IF FOUND THEN
            event_id := event.id;
            explanation := explanation || format('; %s was notified at %s: %s', event.detail ->> 'contact', event.at,
                                                 event.detail ->> 'problem');
        END IF;
        RETURN;
    END IF;
    SELECT a.* INTO around
      FROM recur_internal.occurrences_around(
               action.schedule, action.timezone, instant, action.starts_at, action.ends_at, action.on_dst_gap,
               action.on_dst_fold) AS a;
    exact := around.previous IS NOT DISTINCT FROM instant;
    SELECT e.* INTO event FROM recur.events AS e
     WHERE e.action_id = action.id AND e.kind = 'occurrence.skipped'
       AND instant BETWEEN (e.detail ->> 'from')::timestamptz AND (e.detail ->> 'until')::timestamptz
       AND (exact OR instant IN ((e.detail ->> 'from')::timestamptz, (e.detail ->> 'until')::timestamptz))
     ORDER BY e.id DESC LIMIT 1;
    IF FOUND THEN
        verdict := 'skipped';
        explanation := recur_internal.explain_skip(event.detail);
        -- The dispatch that stands for a duplicate.
        dispatch_id := (event.detail ->> 'dispatch_id')::uuid;
        event_id := event.id;
    ELSIF exact THEN
        SELECT o.verdict, o.explanation, o.event_id INTO verdict, explanation, event_id
          FROM recur_internal.explain_occurrence(action, instant) AS o;
    ELSE
        verdict := 'never existed';
        SELECT o.explanation, o.event_id INTO explanation, event_id
          FROM recur_internal.explain_absence(action, instant, around.previous, around.next) AS o;
    END IF;
END
$$;
COMMENT ON FUNCTION recur.explain(uuid, timestamptz) IS
    'Whether and why an action fired at an instant: fired, skipped, due, to come, or never existed, with the dispatch '
    'or the event that shows it';

CREATE FUNCTION recur.explain(
    action text,
    at timestamptz,
    namespace text DEFAULT NULL,
    tenant text DEFAULT NULL,
    subject text DEFAULT NULL,
    OUT verdict text,
    OUT explanation text,
    OUT dispatch_id uuid,
    OUT event_id bigint
)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.* FROM recur.explain(recur_internal.action_id(action, namespace, tenant, subject),
                                  recur_internal.checked_instant('at', at)) AS e
$$;
COMMENT ON FUNCTION recur.explain(text, timestamptz, text, text, text) IS
    'Whether and why the action with this id or name fired at an instant';
