-- What happened: an audit that only grows. Functions of the extension write it; no role does.

CREATE SEQUENCE recur_internal.event_ids;
COMMENT ON SEQUENCE recur_internal.event_ids IS 'Numbers the events';

CREATE TABLE recur_internal.events (
    id          bigint      NOT NULL DEFAULT nextval('recur_internal.event_ids'),
    at          timestamptz NOT NULL DEFAULT recur.clock(),
    kind        text        NOT NULL,
    action_id   uuid,
    dispatch_id uuid,
    owner_id    int         NOT NULL,
    actor       text        NOT NULL,
    login       text,
    detail      jsonb       NOT NULL DEFAULT '{}',
    partition   smallint    NOT NULL,
    CONSTRAINT events_kind_known CHECK (kind IN (
        'action.created', 'action.updated', 'action.paused', 'action.resumed', 'action.deleted',
        'action.expired', 'action.exhausted', 'action.no_next', 'action.error',
        'occurrence.dispatched', 'occurrence.skipped', 'dispatch.recovered', 'dispatch.completed', 'dispatch.failed',
        'dispatch.cancelled', 'dispatch.retrying', 'dispatch.triggered', 'owner.notified', 'action.resolved',
        'alarm.raised', 'alarm.over', 'subject.forgotten',
        'journey.stored', 'journey.changed', 'journey.dropped',
        'endpoint.created', 'endpoint.changed', 'endpoint.dropped', 'endpoint.paused', 'endpoint.resumed',
        'endpoint.disabled'))
) PARTITION BY LIST (partition);
CREATE INDEX events_by_id ON recur_internal.events (id);
CREATE INDEX events_of_action ON recur_internal.events (action_id, at);

COMMENT ON TABLE recur_internal.events IS 'What happened to actions and occurrences; read recur.events instead';
COMMENT ON COLUMN recur_internal.events.id IS 'Numbers the events in the order in which they were recorded';
COMMENT ON COLUMN recur_internal.events.at IS 'When it happened';
COMMENT ON COLUMN recur_internal.events.kind IS 'What happened: action.created, action.updated, …';
COMMENT ON COLUMN recur_internal.events.action_id IS 'The action, which may have been deleted since';
COMMENT ON COLUMN recur_internal.events.dispatch_id IS 'The dispatch, if the event concerns one';
COMMENT ON COLUMN recur_internal.events.owner_id IS 'The owner of the action';
COMMENT ON COLUMN recur_internal.events.actor IS
    'The role that did it, after SET ROLE; recur_engine where a worker did';
COMMENT ON COLUMN recur_internal.events.login IS
    'The role that logged in, where it is another than the actor: a pool, or a person who acts for a team';
COMMENT ON COLUMN recur_internal.events.detail IS 'More; for an update, the old and the new value of what changed';
COMMENT ON COLUMN recur_internal.events.partition IS 'The partition of the ring that holds the row';

SELECT pg_catalog.pg_extension_config_dump('recur_internal.event_ids', '');

CREATE VIEW recur.events WITH (security_barrier) AS
SELECT e.id, e.at, e.kind, e.action_id, e.dispatch_id, recur_internal.owner_name(e.owner_id) AS owner, e.actor, e.login,
       e.detail
  FROM recur_internal.events AS e
 WHERE (SELECT recur_internal.sees_all()) OR e.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur.events IS 'What happened to actions and occurrences, oldest first; rows are never changed';
COMMENT ON COLUMN recur.events.owner IS 'The owner of the action: roles that may act as this role see the event';

-- Append-only, for superusers too. There are two exceptions: retention, which truncates a whole partition, and
-- recur.forget_subject, which deletes as the engine.
CREATE FUNCTION recur_internal.events_are_kept() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_user = 'recur_engine' THEN
        RETURN NULL;
    END IF;
    RAISE insufficient_privilege USING
        MESSAGE = 'events can not be changed or deleted',
        HINT = 'They are removed by age, with recur.retention.';
END
$$;
COMMENT ON FUNCTION recur_internal.events_are_kept IS 'Internal: refuses every change of an event';
CREATE TRIGGER keep BEFORE UPDATE OR DELETE OR TRUNCATE ON recur_internal.events
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.events_are_kept();
