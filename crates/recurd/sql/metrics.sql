-- What Prometheus scrapes: one row a sample, those of one metric together.
SELECT m.name, m.kind, m.help, m.value,
       (SELECT string_agg(format('%s="%s"', l.key,
                                 replace(replace(replace(l.value, '\', '\\'), '"', '\"'), E'\n', '\n')),
                          ',' ORDER BY l.key)
          FROM jsonb_each_text(m.labels) AS l) AS labels
  FROM recur.metrics() WITH ORDINALITY AS m
 ORDER BY regexp_replace(m.name, '_(bucket|sum|count)$', ''), m.ordinality
