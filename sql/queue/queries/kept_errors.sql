CASE jsonb_typeof(errors)
         WHEN 'array' THEN CASE WHEN jsonb_array_length(errors) < 100 THEN errors ELSE errors - 0 END
         ELSE coalesce(errors, '[]') END