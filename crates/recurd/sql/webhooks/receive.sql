-- $1 text: provider; $2 text: action type; $3 bytea: body; $4 text: content type; $5 text: headers, JSON; $6 text:
-- namespace; $7 text: tenant; $8 text: dedup key; $9 float8: how long it is remembered, in seconds
SELECT recur.receive(provider => $1::text, action_type => $2::text, raw_payload => $3::bytea,
                     content_type => $4::text, headers => $5::text::jsonb, namespace => $6::text, tenant => $7::text,
                     dedup_key => $8::text, dedup_window => make_interval(secs => $9::float8)) AS id
