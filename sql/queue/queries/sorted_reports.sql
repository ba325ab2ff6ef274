SELECT u.id, u.attempt, NULL::jsonb AS result, NULL::text AS reason, u.number
      FROM unnest($1, $2) WITH ORDINALITY AS u (id, attempt, number)
