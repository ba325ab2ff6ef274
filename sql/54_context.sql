-- What an action carries from run to run, and what it carried before.

-- Whoever changes a context, a consumer or an author, the versions before and after the change are kept. The first one
-- is only kept when it is replaced: until then it stands nowhere but in recur.progress.
CREATE FUNCTION recur._context_changed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kept CONSTANT int := 100;
BEGIN
    IF OLD.context_version > 0 THEN
        INSERT INTO recur.contexts (action_id, version, context, actor, at)
        SELECT OLD.action_id, OLD.context_version, OLD.context, d.owner, d.created_at
          FROM recur.definitions AS d WHERE d.id = OLD.action_id
            ON CONFLICT (action_id, version) DO NOTHING;
    END IF;
    INSERT INTO recur.contexts (action_id, version, context, dispatch_id)
    VALUES (NEW.action_id, NEW.context_version, NEW.context,
            CASE WHEN NEW.context_left_by IS DISTINCT FROM OLD.context_left_by THEN NEW.context_left_by END);
    DELETE FROM recur.contexts AS c WHERE c.action_id = NEW.action_id AND c.version <= NEW.context_version - kept;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION recur._context_changed IS 'Internal: keeps the contexts that an action has had';
CREATE TRIGGER keep_context AFTER UPDATE OF context_version ON recur.progress
    FOR EACH ROW WHEN (NEW.context_version <> OLD.context_version) EXECUTE FUNCTION recur._context_changed();

CREATE FUNCTION recur.context_history(id uuid, "limit" int DEFAULT 10)
    RETURNS TABLE (version int, context jsonb, dispatch_id uuid, actor text, at timestamptz)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action recur.recurring_actions := recur.get(context_history.id);
BEGIN
    PERFORM recur._check_number('limit', context_history."limit", 1);
    RETURN QUERY
    SELECT c.version, c.context, c.dispatch_id, c.actor, c.at
      FROM recur.contexts AS c
     WHERE c.action_id = action.id
     UNION ALL
    SELECT action.context_version, action.context, NULL::uuid, action.owner, action.created_at
     WHERE action.context_version = 1
       AND NOT EXISTS (SELECT FROM recur.contexts AS c WHERE c.action_id = action.id AND c.version = 1)
     ORDER BY 1 DESC
     LIMIT context_history."limit";
END
$$;
COMMENT ON FUNCTION recur.context_history IS
    'The contexts that an action has had, the latest first: version, who left it, and when. The last hundred are kept';

CREATE FUNCTION recur.restore_context(id uuid, version int) RETURNS recur.recurring_actions
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    action   recur.recurring_actions := recur.get(restore_context.id);
    previous jsonb;
BEGIN
    SELECT h.context INTO previous
      FROM recur.context_history(action.id, 1000) AS h WHERE h.version = restore_context.version;
    IF NOT FOUND THEN
        RAISE no_data_found USING
            MESSAGE = format('action "%s" has no context of version %s', action.name, coalesce(restore_context.version::text, 'NULL')),
            HINT = 'recur.context_history() lists the versions that are kept.';
    END IF;
    UPDATE recur.recurring_actions AS a SET context = previous WHERE a.id = action.id;
    RETURN recur.get(restore_context.id);
END
$$;
COMMENT ON FUNCTION recur.restore_context IS
    'Gives an action the context that it had at a version, as a new version; a run that is under way can not overwrite it';
