{{live_dispatches l except attempt, claimed_by, started_at}}, l.attempt + 1 AS attempt, $8 AS claimed_by,
              $9 AS started_at
