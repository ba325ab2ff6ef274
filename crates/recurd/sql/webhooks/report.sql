-- What deliveries came to, many in one transaction.
-- $1 uuid[]: dispatches, in their order; $2 int[]: attempts; $3 text[]: outcomes; $4 int[]: HTTP statuses; $5 text[]:
-- results, JSON; $6 text[]: reasons; $7 float8[]: seconds until the next attempt
SELECT reported.id, reported.status
  FROM unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::float8[])
       AS r(id, attempt, outcome, http_status, result, reason, seconds),
       LATERAL recur.report_webhook(r.id, r.attempt, r.outcome, r.http_status, r.result::jsonb, r.reason,
                                    make_interval(secs => r.seconds)) AS reported
