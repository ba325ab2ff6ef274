-- The keys of an object, each with its value as JSON, whether that is null, and the value as text. An object or an
-- array may be large and comes without its text. There are fewer columns than these rows: a key that is left out is
-- not the only one that is unknown.
-- $1 jsonb: changes
SELECT e.key, e.value, jsonb_typeof(e.value) = 'null',
       CASE WHEN jsonb_typeof(e.value) NOT IN ('object', 'array') THEN e.value #>> '{}' END
  FROM jsonb_each($1) AS e
 LIMIT 100
