-- How many actions have these words, counted to $2 at the most.
-- $1 words to search for
SELECT count(*)
  FROM (SELECT FROM recur.definitions AS d
         WHERE to_tsvector('simple', d.name || ' ' || coalesce(d.description, '')) @@ recur._words($1)
         LIMIT $2) AS found
