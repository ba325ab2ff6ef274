-- Gives waiting dispatches their endpoints.
-- $1 text: the operator's endpoints, JSON; $2 int: limit
SELECT r.bound + r.split + r.unmatched AS routed
  FROM recur.route_webhooks($1::text::jsonb, $2::int) AS r
