-- The occurrences of an action, as the role that asks.
-- $1 uuid: action; $2 text: time zone; $3 timestamptz: from; $4 int: how many
SELECT p.occurrence, p.local_time, p.note FROM recur.preview($1, $2, $3, $4) AS p
