-- How many deliveries run to endpoints. Owner 0 has the endpoints of the operator, which get webhooks of many owners.
-- $1 int[]: owners; $2 text[]: names
SELECT u.owner_id, u.endpoint,
       (SELECT count(*) FROM recur_internal.live_dispatches AS r
         WHERE r.status = 'running' AND r.endpoint = u.endpoint AND (u.owner_id = 0 OR r.owner_id = u.owner_id))
  FROM unnest($1, $2) AS u (owner_id, endpoint)
