-- $1 the id of a new action
SELECT row_to_json(s)::text AS body, s.id::text AS id
  FROM (SELECT a.id, a.name, a.enabled, a.next_run_at FROM recur.get($1::text::uuid) AS a) AS s
