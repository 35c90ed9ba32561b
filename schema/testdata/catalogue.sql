-- Everything in the schema $1, a line an object, without what differs between two runs (object ids, column numbers, positions
-- of sequences) and with the schema's own name left out.
WITH relation AS (
    SELECT c.*
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name
), line AS (
    SELECT concat_ws(' ', 'schema', n.nspacl, obj_description(n.oid, 'pg_namespace')) AS text
    FROM pg_namespace AS n
    WHERE n.nspname = $1::name
    UNION ALL
    SELECT concat_ws(' ', 'object', pg_describe_object(d.classid, d.objid, d.objsubid))
    FROM pg_depend AS d
    JOIN pg_namespace AS n ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
    WHERE n.nspname = $1::name
    UNION ALL
    SELECT concat_ws(' ', 'relation', r.relname, r.relkind, r.relpersistence, r.relacl, r.reloptions, obj_description(r.oid, 'pg_class'))
    FROM relation AS r
    UNION ALL
    SELECT concat_ws(' ', 'column', r.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
        a.attstorage, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid))
    FROM relation AS r
    JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    UNION ALL
    SELECT concat_ws(' ', 'constraint', r.relname, o.conname, o.convalidated, pg_get_constraintdef(o.oid))
    FROM relation AS r
    JOIN pg_constraint AS o ON o.conrelid = r.oid
    UNION ALL
    SELECT concat_ws(' ', 'index', r.relname, i.indisvalid, pg_get_indexdef(r.oid))
    FROM relation AS r
    JOIN pg_index AS i ON i.indexrelid = r.oid
    UNION ALL
    SELECT concat_ws(' ', 'sequence', r.relname, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcycle)
    FROM relation AS r
    JOIN pg_sequence AS s ON s.seqrelid = r.oid
    UNION ALL
    SELECT concat_ws(' ', 'trigger', r.relname, pg_get_triggerdef(t.oid))
    FROM relation AS r
    JOIN pg_trigger AS t ON t.tgrelid = r.oid
)
SELECT replace(text, quote_ident($1::text) || '.', '')
FROM line
ORDER BY 1;
