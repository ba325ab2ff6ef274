SELECT u.id, u.version, u.result, NULL::text AS reason, u.number
      FROM unnest($1, $4, $3) WITH ORDINALITY AS u (id, version, result, number)
