-- Is there anything that could fire, or be handed out, and no row that says where? One snapshot for both: the first
-- action may be committed at this moment, with its row.
SELECT NOT EXISTS (SELECT FROM recur_internal.home)
       AND (EXISTS (SELECT FROM recur_internal.definitions) OR EXISTS (SELECT FROM recur_internal.timers)
            OR EXISTS (SELECT FROM recur_internal.live_dispatches))
