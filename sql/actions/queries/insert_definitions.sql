-- Inserts the definitions of new actions of one owner, apart from those of which another action has the identity, and
-- returns which.
-- $1 int: owner; $2 uuid[]: ids; $3 timestamptz[]: when each is created; from $4 on, arrays: the columns of the
-- definition. {own} are those that a definition has besides.
INSERT INTO recur_internal.definitions
       (id, owner_id, duplicate, created_at, updated_at, {{definitions except {{own}}}})
SELECT u.id, $1, false, u.now, u.now, {{definitions u except {{own}}}}
  FROM unnest($2, $3, {{$4 definitions except {{own}}}}) AS u (id, now, {{definitions except {{own}}}})
    ON CONFLICT DO NOTHING
RETURNING id
