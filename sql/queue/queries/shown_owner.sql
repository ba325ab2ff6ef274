recur_internal.owner_name({{row}}.owner_id) AS owner
