-- $1 the id of a dispatch; $2 the attempt; $3 why; $4 whether to try again; $5 after how long
SELECT row_to_json(s)::text AS body, s.id::text AS id
  FROM recur.fail($1::text::uuid, $2::text::int, $3::text, coalesce($4::text::boolean, true),
                  retry_in => $5::text::interval) AS s
