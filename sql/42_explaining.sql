-- Why did it fire, or not?

CREATE FUNCTION recur._explain_skip(detail jsonb) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE detail ->> 'reason'
               WHEN 'misfire' THEN 'it was missed, and by the misfire policy it was not made up for'
               WHEN 'overlap' THEN 'an earlier dispatch was unfinished, and by the overlap policy it gave way'
               WHEN 'paused' THEN 'the action was paused'
               ELSE coalesce(detail ->> 'reason', 'no reason was recorded') END
           || CASE WHEN (detail ->> 'count')::bigint > 1
                   THEN format(' (one of %s, from %s to %s)', detail ->> 'count', detail ->> 'from', detail ->> 'until')
                   ELSE '' END
$$;
COMMENT ON FUNCTION recur._explain_skip IS 'Internal: the reason of an occurrence.skipped event in words';

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
    action   recur.recurring_actions := recur.get(explain.id);
    now      timestamptz := clock_timestamp();
    dispatch recur.dispatches;
    event    recur.events;
    around   record;
    exact    boolean;
BEGIN
    IF explain.at IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'invalid at "NULL": must have a value';
    END IF;
    SELECT d.* INTO dispatch FROM recur.dispatches AS d
     WHERE d.action_id = action.id AND d.scheduled_at = explain.at
     ORDER BY d.created_at LIMIT 1;
    IF FOUND THEN
        dispatch_id := dispatch.id;
        verdict := CASE WHEN dispatch.scheduled_at > now THEN 'to come' ELSE 'fired' END;
        explanation := format('dispatched by %s %s; it is %s', dispatch.trigger,
            CASE WHEN dispatch.created_at >= dispatch.scheduled_at THEN recur._ago(dispatch.created_at - dispatch.scheduled_at) || ' late'
                 WHEN action.horizon IS NULL AND action.horizon_count IS NULL THEN 'on time'
                 ELSE 'ahead of its time' END,
            dispatch.status || CASE WHEN dispatch.attempt > 0 THEN format(' after %s attempt(s)', dispatch.attempt) ELSE '' END
                            || coalesce(': ' || dispatch.error, ''));
        RETURN;
    END IF;
    SELECT a.* INTO around
      FROM recur._around(action.schedule, action.timezone, explain.at - interval '1 microsecond', explain.at,
                         action.starts_at, action.ends_at, action.on_dst_gap, action.on_dst_fold) AS a;
    exact := around.previous IS NOT DISTINCT FROM explain.at;
    SELECT e.* INTO event FROM recur.events AS e
     WHERE e.action_id = action.id AND e.kind = 'occurrence.skipped'
       AND explain.at BETWEEN (e.detail ->> 'from')::timestamptz AND (e.detail ->> 'until')::timestamptz
       AND (exact OR explain.at IN ((e.detail ->> 'from')::timestamptz, (e.detail ->> 'until')::timestamptz))
     ORDER BY e.id DESC LIMIT 1;
    IF FOUND THEN
        verdict := 'skipped';
        explanation := recur._explain_skip(event.detail);
        event_id := event.id;
        RETURN;
    END IF;
    IF NOT exact THEN
        verdict := 'never existed';
        explanation := format('%s has no occurrence then%s%s', recur.describe(action.schedule, action.timezone),
                              '; the one before is ' || around.previous, '; the one after is ' || around.next);
        -- What it was before an edit is another matter.
        SELECT e.* INTO event FROM recur.events AS e
         WHERE e.action_id = action.id AND e.kind = 'action.updated' AND e.at > explain.at
           AND e.detail -> 'new' ?| ARRAY['schedule', 'timezone', 'starts_at', 'ends_at', 'on_dst_gap', 'on_dst_fold']
         ORDER BY e.id LIMIT 1;
        IF FOUND THEN
            event_id := event.id;
            explanation := explanation || format('; but it was rescheduled at %s, from %s', event.at, event.detail -> 'old');
        END IF;
        RETURN;
    END IF;
    IF explain.at < action.created_at AND explain.at < coalesce(action.next_run_at, 'infinity') THEN
        verdict := 'never existed';
        explanation := format('the action was created later, at %s', action.created_at);
    ELSIF NOT action.enabled AND action.ended_reason IS NOT NULL THEN
        verdict := 'never existed';
        explanation := format('the action has ended: %s', action.ended_reason);
    ELSIF NOT action.enabled THEN
        verdict := CASE WHEN explain.at > now THEN 'to come' ELSE 'skipped' END;
        explanation := format('the action is paused%s', ': ' || action.paused_reason)
            || CASE WHEN explain.at > now THEN '; unless it is resumed before, nothing fires' ELSE '' END;
    ELSIF explain.at >= action.next_run_at AND explain.at <= now THEN
        verdict := 'due';
        explanation := CASE WHEN action.error_count > 0
            THEN format('it is due, but could not be dispatched: %s', action.last_error)
            ELSE 'it is due and not dispatched yet; recur.doctor() tells whether something keeps the workers from it' END;
    ELSIF explain.at >= action.next_run_at THEN
        verdict := 'to come';
        explanation := CASE WHEN explain.at = action.next_run_at THEN 'it is the next one'
                            ELSE format('the next one is at %s', action.next_run_at) END;
    ELSE
        verdict := 'unknown';
        explanation := 'its dispatch or its event is no longer kept, or the action was rescheduled or paused around that time';
        SELECT e.* INTO event FROM recur.events AS e
         WHERE e.action_id = action.id AND e.kind IN ('action.updated', 'action.resumed') AND e.at >= explain.at
         ORDER BY e.id LIMIT 1;
        IF FOUND THEN
            event_id := event.id;
            verdict := 'skipped';
            explanation := format('%s at %s: from then on it is counted anew', replace(event.kind, '.', ' was '), event.at);
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION recur.explain IS
    'Whether and why an action fired at an instant: fired, skipped, due, to come, or never existed, with the dispatch or the event that shows it';
