-- Names of which one may have been meant, where there is none of the name that was given. At most 10,000 are looked at:
-- a mistake costs no more where there are a million actions.
-- $1 text: name; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees, NULL for all
SELECT DISTINCT s.name
  FROM (SELECT d.name
          FROM recur_internal.definitions AS d
         WHERE d.namespace = $2 AND d.tenant = $3 AND ($4 IS NULL OR d.owner_id = ANY ($4))
         ORDER BY d.name
         LIMIT 10000) AS s
 WHERE s.name <> $1 AND abs(length(s.name) - length($1)) <= length($1) / 3
