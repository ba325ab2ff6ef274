-- What happened: an audit that grows only at its end. Nobody but the functions of the extension writes it.

CREATE TABLE recur.events (
    id          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind        text        NOT NULL,
    action_id   uuid,
    dispatch_id uuid,
    owner       name        NOT NULL,
    actor       name        NOT NULL DEFAULT session_user,
    detail      jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT events_pkey PRIMARY KEY (id),
    CONSTRAINT events_kind_known CHECK (kind IN (
        'action.created', 'action.updated', 'action.paused', 'action.resumed', 'action.deleted',
        'action.expired', 'action.exhausted', 'action.no_next', 'action.error',
        'occurrence.dispatched', 'occurrence.skipped', 'dispatch.recovered', 'owner.notified'))
);
CREATE INDEX events_of_action ON recur.events (action_id, at);

COMMENT ON TABLE recur.events IS 'What happened to actions and occurrences, oldest first; rows are never changed';
COMMENT ON COLUMN recur.events.id IS 'In the order in which they were recorded';
COMMENT ON COLUMN recur.events.at IS 'When';
COMMENT ON COLUMN recur.events.kind IS 'What: action.created, action.updated, …';
COMMENT ON COLUMN recur.events.action_id IS 'To which action; it may have been deleted since';
COMMENT ON COLUMN recur.events.dispatch_id IS 'To which dispatch, if it concerns one';
COMMENT ON COLUMN recur.events.owner IS 'As of the action: the members of this role see the event';
COMMENT ON COLUMN recur.events.actor IS 'Who did it: the role that the session logged in as';
COMMENT ON COLUMN recur.events.detail IS 'More; for an update, the old and the new value of what changed';

SELECT pg_catalog.pg_extension_config_dump('recur.events', '');

-- Append-only for everybody, superusers by mistake included; retention removes old rows as the one exception.
CREATE FUNCTION recur._events_are_kept() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE insufficient_privilege USING
        MESSAGE = 'events can not be changed or deleted',
        HINT = 'They are removed by age, with recur.retention.';
END
$$;
COMMENT ON FUNCTION recur._events_are_kept IS 'Internal: refuses every change of an event';
CREATE TRIGGER keep BEFORE UPDATE OR DELETE OR TRUNCATE ON recur.events
    FOR EACH STATEMENT EXECUTE FUNCTION recur._events_are_kept();

-- Not granted to anybody: called by functions that run as the extension's owner.
CREATE FUNCTION recur._record_event(kind text, action_id uuid, owner name, detail jsonb) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH recorded AS (
        INSERT INTO recur.events (kind, action_id, owner, detail)
        VALUES (_record_event.kind, _record_event.action_id, _record_event.owner, _record_event.detail)
        RETURNING id, kind, action_id, actor
    )
    SELECT pg_notify('recur_events', jsonb_build_object(
               'id', r.id, 'kind', r.kind, 'action_id', r.action_id, 'actor', r.actor)::text)
      FROM recorded AS r
$$;
COMMENT ON FUNCTION recur._record_event IS 'Internal: records an event and announces it on channel recur_events';
