-- Removes the events of a subject: of its actions, of its dispatches, those that name it, and those of another
-- subject's action that are from the time when it was this subject's, or repeat what it was then. No other statement
-- removes single events. {periods} is periods_of_subject.sql.
-- $1 text: subject; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees, each NULL for all; $5
-- uuid[]: actions; $6 uuid[]: dispatches
DELETE FROM recur_internal.events AS e
 WHERE ($4 IS NULL OR e.owner_id = ANY ($4))
   AND (e.action_id = ANY ($5) OR e.dispatch_id = ANY ($6)
        OR ($1 IN (e.detail ->> 'subject', e.detail #>> '{old,subject}', e.detail #>> '{new,subject}')
            AND ($2 IS NULL
                 OR coalesce(e.detail ->> 'namespace', (SELECT d.namespace FROM recur_internal.definitions AS d
                                                         WHERE d.id = e.action_id), $2) = $2)
            AND ($3 IS NULL
                 OR coalesce(e.detail ->> 'tenant', (SELECT d.tenant FROM recur_internal.definitions AS d
                                                      WHERE d.id = e.action_id), $3) = $3))
        OR e.id IN (SELECT r.id FROM ({{periods}}) AS f
                      JOIN recur_internal.events AS r
                        ON r.action_id = f.action_id AND r.id <= f.until_id AND (f.from_id IS NULL OR r.id > f.from_id))
        OR e.id IN (SELECT min(r.id) FROM ({{periods}}) AS f
                      JOIN recur_internal.events AS r ON r.action_id = f.action_id AND r.id >= f.until_id
                      JOIN unnest('{name,payload,metadata,context,labels}'::text[]) AS k (name)
                        ON r.detail -> 'old' ? k.name
                     GROUP BY f.action_id, f.until_id, k.name))
