{{live_dispatches l except attempt, claimed_by, started_at}}, l.attempt + 1 AS attempt, $7 AS claimed_by,
              $8 AS started_at
