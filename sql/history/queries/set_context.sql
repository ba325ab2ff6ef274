-- Gives an action a new context, and adds it to the kept versions. The first version is stored in progress only, and
-- added when it is replaced. Returns the version that was found; if another one was expected, nothing changes.
-- $1 uuid: action; $2 jsonb: context, or NULL; $3 int: expected version, NULL for any; $4 uuid: dispatch that left it,
-- or NULL; $5 text: actor
WITH found AS (
    SELECT p.context_version, p.context FROM recur_internal.progress AS p WHERE p.action_id = $1 FOR UPDATE
), changed AS (
    UPDATE recur_internal.progress AS p
       SET context = $2, context_version = p.context_version + 1
      FROM found AS f
     WHERE p.action_id = $1 AND ($3 IS NULL OR f.context_version = $3)
    RETURNING p.context_version
), first AS (
    INSERT INTO recur_internal.contexts (action_id, version, context, actor, at)
    SELECT $1, f.context_version, f.context, recur_internal.owner_name(d.owner_id), d.created_at
      FROM changed AS c, found AS f, recur_internal.definitions AS d
     WHERE d.id = $1 AND f.context_version > 0
        ON CONFLICT (action_id, version) DO NOTHING
), kept AS (
    INSERT INTO recur_internal.contexts (action_id, version, context, dispatch_id, actor, at)
    SELECT $1, c.context_version, $2, $4, $5, recur.clock() FROM changed AS c
), trimmed AS (
    DELETE FROM recur_internal.contexts AS o
     USING changed AS c
     WHERE o.action_id = $1 AND o.version <= c.context_version - 100
)
SELECT f.context_version FROM found AS f
