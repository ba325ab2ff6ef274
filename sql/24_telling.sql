-- Recording what happens and telling people of it.

-- Not granted to anybody: called by functions that run as the extension's owner.
CREATE FUNCTION recur._record_event(kind text, action_id uuid, owner text, detail jsonb) RETURNS void
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

-- Runs as the extension's owner, because nobody else records events, and so looks itself whether the action is any
-- business of whoever has logged in. It tells nothing that is not in the tables, and at most once in a mute_interval.
-- Whoever has the row of progress locked, a consumer whose transaction is still open, is not waited for: better told
-- once too often than not at all, and the dispatcher waits for nobody.
CREATE FUNCTION recur._tell_contact(action_id uuid, problem text) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH told AS (
        SELECT d.id, d.owner, coalesce(d.contact, d.owner) AS contact
          FROM recur.progress AS p
          JOIN recur.definitions AS d ON d.id = p.action_id
         WHERE p.action_id = _tell_contact.action_id AND NOT d.mute
           AND (has_function_privilege(session_user, 'recur._admin()', 'EXECUTE')
                OR EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = d.owner AND pg_has_role(session_user, r.oid, 'MEMBER')))
           AND (d.mute_interval IS NULL OR p.last_notified_at IS NULL
                OR p.last_notified_at <= clock_timestamp() - d.mute_interval)
    ), noted AS (
        UPDATE recur.progress AS p
           SET last_notified_at = clock_timestamp()
         WHERE p.action_id IN (SELECT l.action_id FROM recur.progress AS l
                                WHERE l.action_id IN (SELECT t.id FROM told AS t)
                                  FOR UPDATE SKIP LOCKED)
    ), recorded AS (
        INSERT INTO recur.events (kind, action_id, owner, detail)
        SELECT 'owner.notified', t.id, t.owner, jsonb_build_object('contact', t.contact, 'problem', _tell_contact.problem)
          FROM told AS t
        RETURNING id, kind, action_id, detail
    ), sent AS (
        SELECT pg_notify('recur_events', jsonb_build_object(
                   'id', r.id, 'kind', r.kind, 'action_id', r.action_id, 'contact', r.detail ->> 'contact')::text)
          FROM recorded AS r
    )
    SELECT count(*) > 0 FROM sent
$$;
COMMENT ON FUNCTION recur._tell_contact IS 'Internal: tells the contact of an action, or else its owner, about a problem, unless it is muted; true if it did';
