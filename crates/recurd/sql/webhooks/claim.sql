-- Takes deliveries that are due. Headers and payload come as they are stored.
-- $1 int: limit; $2 float8: the lease in seconds; $3 text: consumer; $4 text: the operator's endpoints, JSON
SELECT c.id, c.attempt, c.owner, c.endpoint, c.url, c.headers::text AS headers,
       EXTRACT(epoch FROM c.timeout)::float8 AS timeout, c.secrets, c.action_type, c.payload, c.raw_payload,
       c.content_type, c.metadata ->> 'traceparent' AS traceparent, c.metadata ->> 'tracestate' AS tracestate
  FROM recur.claim_webhooks("limit" => $1::int, lease => make_interval(secs => $2::float8), consumer => $3::text,
                            operator => $4::text::jsonb) AS c
