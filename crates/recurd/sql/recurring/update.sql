-- $1 the id of an action; $2 the changes; $3 the version that it must have: the microseconds of updated_at
SELECT u.id::text AS id
  FROM recur.update($1::text::uuid, $2::text::jsonb,
                    if_updated_at => 'epoch'::timestamptz + $3::text::bigint * '1 microsecond'::interval) AS u
