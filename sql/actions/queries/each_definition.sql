-- The keys of objects, each with the number of its object, its value as JSON, whether that is null, and the value as
-- text: as in each_change.sql.
-- $1 jsonb[]: objects
SELECT u.number, e.key, e.value, jsonb_typeof(e.value) = 'null',
       CASE WHEN jsonb_typeof(e.value) NOT IN ('object', 'array') THEN e.value #>> '{}' END
  FROM unnest($1) WITH ORDINALITY AS u (definition, number),
       LATERAL (SELECT o.key, o.value FROM jsonb_each(u.definition) AS o LIMIT 100) AS e
