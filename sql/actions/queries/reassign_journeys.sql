-- $1 int: present owner; $2 int: new owner
UPDATE recur_internal.journeys AS j SET owner_id = $2 WHERE j.owner_id = $1
