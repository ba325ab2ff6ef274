-- $1 the id of an action; $2 a time zone instead of its own; $3 after this instant; $4 how many
SELECT row_to_json(p)::text AS body
  FROM recur.preview($1::text::uuid, timezone => $2::text,
                     "from" => coalesce($3::text::timestamptz, recur.clock()),
                     count => coalesce($4::text::int, 10)) AS p
