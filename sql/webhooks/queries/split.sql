-- A dispatch for each endpoint that a webhook, which the caller has locked, goes to. It belongs to no action, so that
-- it counts as no run, and has no key, so that nothing merges with it. {own} are the columns that are its
-- own; {metadata} and {name} are what people see of the webhook.
-- $1 uuid[]: webhooks; $2 uuid[]: ids of the new dispatches; $3 text[]: the endpoint of each; $4 timestamptz: now
INSERT INTO recur_internal.live_dispatches AS l
       ({{live_dispatches except {{own}}}},
        id, parent_id, endpoint, available_at, retry_backoff, metadata, name)
SELECT {{live_dispatches p except {{own}}}},
       u.child, p.id, u.endpoint, $4,
       coalesce(p.retry_backoff,
                (SELECT d.retry_backoff FROM recur_internal.definitions AS d WHERE d.id = p.action_id)),
       {{metadata}},
       {{name}}
  FROM unnest($1, $2, $3) AS u (parent, child, endpoint)
  JOIN recur_internal.live_dispatches AS p ON p.id = u.parent
RETURNING l.notify_channel
