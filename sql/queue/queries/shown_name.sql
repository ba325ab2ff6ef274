coalesce({{row}}.name, (SELECT a.name FROM recur_internal.definitions AS a
                         WHERE a.id = {{row}}.action_id AND a.owner_id = {{row}}.owner_id)) AS name
