-- All handlers, those of an owner together.
SELECT h.owner_id, h.pattern, h.function, h.function_owner, h.timeout
  FROM recur_internal.handlers AS h
 ORDER BY h.owner_id, h.pattern
