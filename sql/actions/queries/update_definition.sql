-- $1 to $37: the columns of the definition; $38 uuid: action; $39 boolean: duplicate; $40 timestamptz: now
UPDATE recur_internal.definitions AS d
   SET ({{definitions except id, owner_id, duplicate, created_at, updated_at}})
     = ROW ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
            $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37),
       duplicate = $39, updated_at = $40
 WHERE d.id = $38
