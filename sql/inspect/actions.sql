-- Finding actions, and seeing what they did.

CREATE FUNCTION recur.id_of(
    name      text,
    namespace text DEFAULT NULL,
    tenant    text DEFAULT NULL,
    subject   text DEFAULT NULL
) RETURNS uuid
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT recur_internal.action_id(name, namespace, tenant, subject) $$;
COMMENT ON FUNCTION recur.id_of IS
    'The id of the action with this name; of several that were added under it, the first';

CREATE FUNCTION recur.get(id uuid) RETURNS SETOF recur.recurring_actions
    LANGUAGE plpgsql STABLE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY SELECT a.* FROM recur.recurring_actions AS a WHERE a.id = get.id;
    IF NOT FOUND THEN
        RAISE no_data_found USING
            MESSAGE = format('no action has the id %s', coalesce(get.id::text, 'NULL')),
            HINT = 'recur.list() shows the actions that you can see.';
    END IF;
END
$$;
COMMENT ON FUNCTION recur.get(uuid) IS 'An action by its id';

CREATE FUNCTION recur.get(
    action text, namespace text DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL
) RETURNS SETOF recur.recurring_actions
    LANGUAGE sql STABLE ROWS 1
    SET search_path = pg_catalog, pg_temp
AS $$ SELECT g.* FROM recur.get(recur_internal.action_id(action, namespace, tenant, subject)) AS g $$;
COMMENT ON FUNCTION recur.get(text, text, text, text) IS 'An action by its name or id';

-- The words in the form that the index has them, each as a prefix; NULL where there is no word to search for.
CREATE FUNCTION recur_internal.words(search text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT to_tsquery('simple', string_agg(quote_literal(word.lexeme) || ':*', ' & '))
      FROM unnest(to_tsvector('simple', search)) AS word
$$;
COMMENT ON FUNCTION recur_internal.words IS 'Internal: a search for words that begin with these';

CREATE FUNCTION recur_internal.matching(
    namespace text, tenant text, enabled boolean, labels jsonb, subject text, owner text, search text, "limit" int,
    after_namespace text, after_tenant text, after_name text, after_id uuid, newest boolean
) RETURNS SETOF uuid
    LANGUAGE c STABLE ROWS 100
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'matching_wrapper';
COMMENT ON FUNCTION recur_internal.matching IS 'Internal: one page of recur.list, of the actions that the caller sees';

CREATE FUNCTION recur.list(
    namespace text    DEFAULT NULL,
    tenant    text    DEFAULT NULL,
    enabled   boolean DEFAULT NULL,
    labels    jsonb   DEFAULT NULL,
    subject   text    DEFAULT NULL,
    owner     text    DEFAULT NULL,
    search    text    DEFAULT NULL,
    "limit"   int     DEFAULT 100,
    after     uuid    DEFAULT NULL,
    "order"   text    DEFAULT 'name'
) RETURNS SETOF recur.recurring_actions
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    page  record;
    ids   uuid[];
    most  int := recur_internal.checked_limit(list."limit");
BEGIN
    SELECT NULL::text AS namespace, NULL::text AS tenant, NULL::text AS name, NULL::uuid AS id INTO page;
    IF list."order" IS NULL OR list."order" NOT IN ('name', 'newest') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid order "%s": must be name or newest', coalesce(list."order", 'NULL'));
    END IF;
    IF length(list.search) > 1000 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid search "%s…": must not be longer than 1000 characters', left(list.search, 120)),
            HINT = 'Give the beginnings of a few words.';
    END IF;
    IF list.after IS NOT NULL THEN
        -- The event of an action that was deleted meanwhile knows its position.
        SELECT position.* INTO page FROM (
            SELECT a.namespace, a.tenant, a.name, a.id FROM recur.recurring_actions AS a WHERE a.id = list.after
            UNION ALL
            SELECT e.detail ->> 'namespace', e.detail ->> 'tenant', e.detail ->> 'name', e.action_id
              FROM recur.events AS e WHERE e.action_id = list.after AND e.kind = 'action.deleted') AS position
         LIMIT 1;
        IF NOT FOUND THEN
            RAISE no_data_found USING
                MESSAGE = format('no action has the id %s', list.after),
                HINT = 'Pass the id of the last action of the page before.';
        END IF;
    END IF;
    SELECT array_agg(m.id) INTO ids
      FROM recur_internal.matching(
               list.namespace, list.tenant, list.enabled, list.labels, list.subject, list.owner,
               CASE WHEN recur_internal.words(list.search) IS NOT NULL THEN list.search END, most,
               page.namespace, page.tenant, page.name, page.id, list."order" = 'newest') AS m (id);
    -- Not as a join: the view is a security barrier, and a join would read all of its rows.
    RETURN QUERY
    SELECT a.* FROM recur.recurring_actions AS a
     WHERE a.id = ANY (ids)
     ORDER BY CASE WHEN list."order" = 'newest' THEN a.id END DESC, a.namespace, a.tenant, a.name, a.id;
END
$$;
COMMENT ON FUNCTION recur.list IS
    'Actions by namespace, tenant, enabled, labels (all of those given), subject, owner and words of name and '
    'description, sorted by name or the newest first; after is the id of the last one of the page before';

CREATE FUNCTION recur.history(id uuid, "limit" int DEFAULT 20, before timestamptz DEFAULT NULL)
    RETURNS SETOF recur.dispatches
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    most int := recur_internal.checked_limit(history."limit");
BEGIN
    RETURN QUERY
    SELECT d.* FROM recur.dispatches AS d
     WHERE d.action_id = history.id AND (history.before IS NULL OR d.scheduled_at < history.before)
     ORDER BY d.scheduled_at DESC, d.id DESC
     LIMIT most;
    IF NOT FOUND AND history.before IS NULL THEN
        -- Raises if there is no such action.
        history.id := recur_internal.action_id(history.id::text, NULL, NULL, NULL);
    END IF;
END
$$;
COMMENT ON FUNCTION recur.history(uuid, int, timestamptz) IS
    'The dispatches of an action, newest first; those of a deleted one too';

CREATE FUNCTION recur.history(
    action text, "limit" int DEFAULT 20, before timestamptz DEFAULT NULL,
    namespace text DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL
) RETURNS SETOF recur.dispatches
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    -- An id needs no action: it may have been deleted.
    SELECT h.*
      FROM recur.history(CASE WHEN history.action ~* '^\s*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\s*$'
                              THEN history.action::uuid
                              ELSE recur_internal.action_id(history.action, namespace, tenant, subject) END,
                         recur_internal.checked_limit("limit"), before) AS h
$$;
COMMENT ON FUNCTION recur.history(text, int, timestamptz, text, text, text) IS
    'The dispatches of an action, by its name or id, newest first';
