-- What happened: an audit that grows only at its end. Nobody but the functions of the extension writes it.

CREATE SEQUENCE recur.event_ids;
COMMENT ON SEQUENCE recur.event_ids IS 'Numbers the events';

CREATE TABLE recur.events (
    id          bigint      NOT NULL DEFAULT nextval('recur.event_ids'),
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind        text        NOT NULL,
    action_id   uuid,
    dispatch_id uuid,
    owner       text        NOT NULL,
    actor       text        NOT NULL DEFAULT session_user,
    detail      jsonb       NOT NULL DEFAULT '{}',
    partition   smallint    NOT NULL,
    CONSTRAINT events_kind_known CHECK (kind IN (
        'action.created', 'action.updated', 'action.paused', 'action.resumed', 'action.deleted',
        'action.expired', 'action.exhausted', 'action.no_next', 'action.error',
        'occurrence.dispatched', 'occurrence.skipped', 'dispatch.recovered', 'owner.notified'))
) PARTITION BY LIST (partition);
CREATE INDEX events_by_id ON recur.events (id);
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
COMMENT ON COLUMN recur.events.partition IS 'Which partition of the ring it is in';

SELECT pg_catalog.pg_extension_config_dump('recur.event_ids', '');

-- Append-only for everybody, superusers by mistake included; retention, which empties a whole partition, is the one
-- exception.
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
