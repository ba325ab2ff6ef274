-- Sets a handler, unless the pattern has one.
-- $1 int: owner; $2 text: pattern; $3 text: function; $4 text: owner of the function; $5 text: timeout, or NULL
INSERT INTO recur_internal.handlers (owner_id, pattern, function, function_owner, timeout) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (owner_id, pattern) DO NOTHING
