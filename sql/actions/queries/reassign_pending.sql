-- Gives the pending dispatches of an owner to another one. A running dispatch stays with the consumer that reports on
-- it.
-- $1 int: present owner; $2 int: new owner
UPDATE recur_internal.live_dispatches AS l SET owner_id = $2
  FROM (SELECT o.id FROM recur_internal.live_dispatches AS o
         WHERE o.owner_id = $1 AND o.status = 'pending'
         ORDER BY o.id
           FOR UPDATE) AS pending
 WHERE l.id = pending.id
