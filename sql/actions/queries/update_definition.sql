-- updated_at as in touch_definition.sql.
-- $1 uuid: action; $2 boolean: duplicate; $3 timestamptz: now; from $4 on: the columns of the definition. {own} are
-- those that a definition has besides.
UPDATE recur_internal.definitions AS d
   SET duplicate = $2, updated_at = greatest($3, d.updated_at + interval '1 microsecond'),
       ({{definitions except {{own}}}})
     = ROW ({{$4 definitions except {{own}}}})
 WHERE d.id = $1
