WITH RECURSIVE priorities AS (
            (SELECT p.priority, 1 AS number FROM recur_internal.live_dispatches AS p
              WHERE {{deliverable}}
              ORDER BY p.priority DESC LIMIT 1)
            UNION ALL
            SELECT (SELECT p.priority FROM recur_internal.live_dispatches AS p
                     WHERE {{deliverable}} AND p.priority < h.priority
                     ORDER BY p.priority DESC LIMIT 1), h.number + 1
              FROM priorities AS h
             WHERE h.priority IS NOT NULL AND h.number < 100)
