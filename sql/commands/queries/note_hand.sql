-- Notes that rows were inserted by hand in this database: from then on, an owner that has any rows is not armed by
-- itself.
INSERT INTO recur_internal.armed_owners (owner_id, role, armed_by) VALUES (0, 0, 'rows were inserted by hand')
    ON CONFLICT (owner_id) DO NOTHING
