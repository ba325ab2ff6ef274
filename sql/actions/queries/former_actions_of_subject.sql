-- Actions of a subject that were deleted before: their events and dispatches have the subject.
-- $1 text: subject; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees; each NULL for all
SELECT f.action_id
  FROM (SELECT e.action_id FROM recur_internal.events AS e
         WHERE e.action_id IS NOT NULL AND e.detail ->> 'subject' = $1
           AND ($2 IS NULL OR e.detail ->> 'namespace' = $2) AND ($3 IS NULL OR e.detail ->> 'tenant' = $3)
           AND ($4 IS NULL OR e.owner_id = ANY ($4))
        UNION
        SELECT d.action_id FROM recur_internal.finished_dispatches AS d
         WHERE d.action_id IS NOT NULL AND d.subject = $1
           AND ($2 IS NULL OR d.namespace = $2) AND ($3 IS NULL OR d.tenant = $3)
           AND ($4 IS NULL OR d.owner_id = ANY ($4))) AS f
 WHERE NOT EXISTS (SELECT FROM recur_internal.definitions AS p WHERE p.id = f.action_id)
