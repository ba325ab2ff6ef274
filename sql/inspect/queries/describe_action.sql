-- The schedule of an action in words, as the role that asks.
-- $1 uuid: action; $2 text: style
SELECT recur.describe($1, $2)
