-- updated_at tells every two states of an action apart, also where the clock stands still or is set back.
-- $1 uuid: action; $2 timestamptz: now
UPDATE recur_internal.definitions AS d
   SET updated_at = greatest($2, d.updated_at + interval '1 microsecond')
 WHERE d.id = $1
