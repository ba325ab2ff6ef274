-- $1 the definition, a JSON object with the arguments of recur.create
SELECT c.id::text AS id
  FROM recur.create_many(ARRAY[$1::text::jsonb]) AS c (id)
