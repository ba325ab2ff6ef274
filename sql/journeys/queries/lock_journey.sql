-- The states of a journey. {lock} is FOR UPDATE where the journey is to be changed, and FOR SHARE where an action is to
-- schedule it: each waits for the other, so that no schedule escapes the check of a change.
-- $1 int: owner; $2 text: name; $3 text: version
SELECT j.states FROM recur_internal.journeys AS j
 WHERE j.owner_id = $1 AND j.name = $2 AND j.version = $3
   {{lock}}
