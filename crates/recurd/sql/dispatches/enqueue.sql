-- $1 provider; $2 action_type; $3 payload; $4 run_at; $5 namespace; $6 tenant; $7 subject; $8 dedup_key;
-- $9 dedup_window; $10 metadata; $11 priority; $12 lock_group; $13 notify_channel; $14 max_attempts;
-- $15 retry_backoff; $16 lease; $17 name; $18 labels
SELECT json_build_object('id', e.id)::text AS body, e.id::text AS id
  FROM recur.enqueue($1::text, $2::text, $3::text::jsonb, run_at => $4::text::timestamptz, namespace => $5::text,
                     tenant => $6::text, subject => $7::text, dedup_key => $8::text,
                     dedup_window => $9::text::interval, metadata => $10::text::jsonb,
                     priority => $11::text::int, lock_group => $12::text, notify_channel => $13::text,
                     max_attempts => $14::text::int, retry_backoff => $15::text::jsonb,
                     lease => $16::text::interval, name => $17::text, labels => $18::text::jsonb) AS e (id)
