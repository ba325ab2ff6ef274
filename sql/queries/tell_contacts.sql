-- $1 uuid[]: actions; $2 text[]: what is wrong with each
SELECT recur._tell_contact(u.action_id, u.problem) FROM unnest($1, $2) AS u (action_id, problem)
