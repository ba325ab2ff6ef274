-- How many actions have these words, counted up to $2.
-- $1 words to search for
SELECT count(*)
  FROM (SELECT FROM recur_internal.definitions AS d
         WHERE to_tsvector('simple', d.name || ' ' || coalesce(d.description, '')) @@ recur_internal.words($1)
         LIMIT $2) AS found
