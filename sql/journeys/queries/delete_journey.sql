-- $1 int: owner; $2 text: name; $3 text: version
DELETE FROM recur_internal.journeys AS j WHERE j.owner_id = $1 AND j.name = $2 AND j.version = $3
