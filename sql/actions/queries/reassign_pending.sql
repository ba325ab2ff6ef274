-- Gives the pending dispatches of an owner to another one. A running dispatch stays with the consumer that reports on
-- it. A webhook that was routed is routed anew, to endpoints of the new owner. One of several that a webhook became
-- keeps the name of its endpoint: each of them would be routed to all.
-- $1 int: present owner; $2 int: new owner
UPDATE recur_internal.live_dispatches AS l SET owner_id = $2,
       endpoint = CASE WHEN l.parent_id IS NOT NULL THEN l.endpoint
                       WHEN l.endpoint IS NOT NULL
                       THEN (SELECT d.endpoint FROM recur_internal.definitions AS d WHERE d.id = l.action_id) END
  FROM (SELECT o.id FROM recur_internal.live_dispatches AS o
         WHERE o.owner_id = $1 AND o.status = 'pending'
         ORDER BY o.id
           FOR UPDATE) AS pending
 WHERE l.id = pending.id
