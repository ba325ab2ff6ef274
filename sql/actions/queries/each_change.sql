-- The keys of an object, each with its value as JSON and as text.
-- $1 jsonb: changes
SELECT e.key, e.value, e.value #>> '{}' FROM jsonb_each($1) AS e
