-- Removes the dispatches of a subject, live and finished, and those of its actions.
-- $1 text: subject; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees, each NULL for all; $5
-- uuid[]: actions
WITH locked AS (
    SELECT l.id FROM recur_internal.live_dispatches AS l
     WHERE ($4 IS NULL OR l.owner_id = ANY ($4))
       AND (l.action_id = ANY ($5)
            OR (l.subject = $1 AND ($2 IS NULL OR l.namespace = $2) AND ($3 IS NULL OR l.tenant = $3)))
     ORDER BY l.id
       FOR UPDATE
), live AS (
    DELETE FROM recur_internal.live_dispatches AS l USING locked AS k WHERE l.id = k.id
    RETURNING l.id
), finished AS (
    DELETE FROM recur_internal.finished_dispatches AS f
     WHERE ($4 IS NULL OR f.owner_id = ANY ($4))
       AND (f.action_id = ANY ($5)
            OR (f.subject = $1 AND ($2 IS NULL OR f.namespace = $2) AND ($3 IS NULL OR f.tenant = $3)))
    RETURNING f.id
)
SELECT live.id FROM live
UNION ALL
SELECT finished.id FROM finished
