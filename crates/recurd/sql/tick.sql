-- What is due, dispatched.
SELECT row_to_json(t)::text AS body FROM recur.tick() AS t
