-- Whom problems of these actions concern. {recipient} is recipient_columns.sql.
-- $1 uuid[]: actions
SELECT {{recipient}}
  FROM recur_internal.definitions AS d
  JOIN recur_internal.progress AS p ON p.action_id = d.id
 WHERE d.id = ANY ($1)
