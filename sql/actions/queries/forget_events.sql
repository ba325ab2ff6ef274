-- Removes the events of a subject: of its actions, of its dispatches, and those that name it. No other statement
-- removes single events.
-- $1 text: subject; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees, each NULL for all; $5
-- uuid[]: actions; $6 uuid[]: dispatches
DELETE FROM recur_internal.events AS e
 WHERE ($4 IS NULL OR e.owner_id = ANY ($4))
   AND (e.action_id = ANY ($5) OR e.dispatch_id = ANY ($6)
        OR ($1 IN (e.detail ->> 'subject', e.detail #>> '{old,subject}', e.detail #>> '{new,subject}')
            AND ($2 IS NULL OR coalesce(e.detail ->> 'namespace', $2) = $2)
            AND ($3 IS NULL OR coalesce(e.detail ->> 'tenant', $3) = $3)))
