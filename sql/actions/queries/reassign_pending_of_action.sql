-- Gives the pending dispatches of an action to another owner, those generated ahead included. A running dispatch stays
-- with the consumer that reports on it. The status is asked for with CASE: see lock_pending_of_actions.sql. A webhook
-- that was routed is routed anew.
-- $1 uuid: action; $2 int: new owner
UPDATE recur_internal.live_dispatches AS l SET owner_id = $2,
       endpoint = CASE WHEN l.endpoint IS NOT NULL
                       THEN (SELECT d.endpoint FROM recur_internal.definitions AS d WHERE d.id = l.action_id) END
  FROM (SELECT o.id FROM recur_internal.live_dispatches AS o
         WHERE o.action_id = $1 AND CASE o.status WHEN 'pending' THEN true END
         ORDER BY o.id
           FOR UPDATE) AS pending
 WHERE l.id = pending.id
