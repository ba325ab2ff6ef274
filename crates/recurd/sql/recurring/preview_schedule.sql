-- $1 a schedule; $2 its time zone; $3 after this instant; $4 how many; $5 starts_at; $6 ends_at; $7 max_runs;
-- $8 on_dst_gap; $9 on_dst_fold
SELECT row_to_json(p)::text AS body
  FROM recur.preview($1::text, $2::text, coalesce($3::text::timestamptz, recur.clock()),
                     coalesce($4::text::int, 10), $5::text::timestamptz, $6::text::timestamptz, $7::text::int,
                     $8::text, $9::text) AS p
