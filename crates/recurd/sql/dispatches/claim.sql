-- $1 at most this many; $2 providers; $3 action types; $4 namespaces; $5 tenants, each a JSON array; $6 lease;
-- $7 the consumer; $8 the agent
SELECT row_to_json(d)::text AS body
  FROM recur.claim("limit" => coalesce($1::text::int, 1),
                   providers => CASE WHEN $2::text IS NOT NULL
                                     THEN ARRAY(SELECT jsonb_array_elements_text($2::text::jsonb)) END,
                   action_types => CASE WHEN $3::text IS NOT NULL
                                        THEN ARRAY(SELECT jsonb_array_elements_text($3::text::jsonb)) END,
                   namespaces => CASE WHEN $4::text IS NOT NULL
                                      THEN ARRAY(SELECT jsonb_array_elements_text($4::text::jsonb)) END,
                   tenants => CASE WHEN $5::text IS NOT NULL
                                   THEN ARRAY(SELECT jsonb_array_elements_text($5::text::jsonb)) END,
                   lease => $6::text::interval, consumer => $7::text, agent => $8::text) AS d
