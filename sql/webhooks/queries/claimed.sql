-- Claimed webhooks, with all that it takes to deliver them.
-- $1 uuid[]: dispatches
SELECT l.id, l.attempt, l.max_attempts, recur_internal.owner_name(l.owner_id), l.endpoint, e.url, e.headers, e.timeout,
       CASE WHEN e.name IS NOT NULL
            THEN ARRAY(SELECT s.secret FROM recur_internal.endpoint_secrets AS s
                        WHERE s.owner_id = l.owner_id AND s.endpoint = l.endpoint
                          AND (s.expires_at IS NULL OR s.expires_at > recur.clock())
                        ORDER BY s.expires_at DESC NULLS FIRST, s.created_at DESC) END,
       {{name}}, l.namespace, l.tenant, l.subject, l.action_type, l.payload::text, l.raw_payload,
       CASE WHEN l.raw_payload IS NOT NULL THEN l.metadata ->> 'content_type' END, {{metadata}}, l.parent_id,
       l.scheduled_at
  FROM unnest($1) WITH ORDINALITY AS u (id, number)
  JOIN recur_internal.live_dispatches AS l ON l.id = u.id
  LEFT JOIN recur_internal.endpoints AS e ON e.owner_id = l.owner_id AND e.name = l.endpoint
 ORDER BY u.number
