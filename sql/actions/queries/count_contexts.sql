-- The contexts of actions. The first one of an action is stored in progress only, until it is replaced.
-- $1 uuid[]: actions
SELECT (SELECT count(*) FROM recur_internal.contexts AS c WHERE c.action_id = ANY ($1))
       + (SELECT count(*) FROM recur_internal.progress AS p
           WHERE p.action_id = ANY ($1) AND p.context IS NOT NULL
             AND NOT EXISTS (SELECT FROM recur_internal.contexts AS c
                              WHERE c.action_id = p.action_id AND c.version = p.context_version))
