greatest({{row}}.updated_at, {{row}}.extended_at, {{row}}.started_at, {{row}}.created_at) AS updated_at
