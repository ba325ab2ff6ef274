-- How many there are, and the first of them.
-- $1 namespace; $2 tenant; $3 labels; $4 why
SELECT row_to_json(s)::text AS body, count(*) OVER () AS count
  FROM recur.pause_all(namespace => $1::text, tenant => $2::text, labels => $3::text::jsonb, reason => $4::text) AS s
 LIMIT 500
