SELECT DISTINCT ON (u.id, u.attempt) u.id, u.attempt, u.result, u.reason, u.number
      FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS u (id, attempt, result, reason, number)
     ORDER BY u.id, u.attempt, u.number
