-- Who may do what with the schema $1 and everything in it: a line for each object and verb, with the roles that may, each with
-- the columns where it may not all. $2 are the roles, and $3 is how to call each.
WITH role AS (
    SELECT r.name, r.shown, r.place
    FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS r (name, shown, place)
), relation AS (
    SELECT c.oid, c.relname, c.relkind, pg_get_userbyid(c.relowner) AS owner
    FROM pg_class AS c
    WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = $1::name) AND c.relkind NOT IN ('i', 'I', 't', 'c')
), right_of AS (
    SELECT 'schema' AS object, v.verb, r.place, CASE WHEN has_schema_privilege(r.name, $1::text, v.verb) THEN r.shown END AS who
    FROM role AS r
    CROSS JOIN (VALUES ('CREATE'), ('USAGE')) AS v (verb)
    UNION ALL
    SELECT c.relname::text, v.verb, r.place, CASE WHEN has_sequence_privilege(r.name, c.oid, v.verb) THEN r.shown END
    FROM relation AS c
    CROSS JOIN role AS r
    CROSS JOIN (VALUES ('SELECT'), ('UPDATE'), ('USAGE')) AS v (verb)
    WHERE c.relkind = 'S'
    UNION ALL
    SELECT c.relname::text, v.verb, r.place,
        CASE
            WHEN has_table_privilege(r.name, c.oid, v.verb) THEN r.shown
            WHEN v.verb IN ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES') AND has_any_column_privilege(r.name, c.oid, v.verb) THEN (
                SELECT r.shown || ' (' || string_agg(a.attname, ', ' ORDER BY a.attname) || ')'
                FROM pg_attribute AS a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(r.name, c.oid, a.attname, v.verb)
            )
        END
    FROM relation AS c
    CROSS JOIN role AS r
    CROSS JOIN (VALUES ('DELETE'), ('INSERT'), ('REFERENCES'), ('SELECT'), ('TRIGGER'), ('TRUNCATE'), ('UPDATE')) AS v (verb)
    WHERE c.relkind <> 'S'
    UNION ALL
    SELECT c.relname::text, 'is owned by', r.place, r.shown
    FROM relation AS c
    INNER JOIN role AS r ON r.name = c.owner
    UNION ALL
    SELECT p.proname || '()', 'is owned by', r.place, r.shown
    FROM pg_proc AS p
    INNER JOIN role AS r ON r.name = pg_get_userbyid(p.proowner)
    WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = $1::name)
    UNION ALL
    SELECT 'schema', 'is owned by', r.place, r.shown
    FROM pg_namespace AS n
    INNER JOIN role AS r ON r.name = pg_get_userbyid(n.nspowner)
    WHERE n.nspname = $1::name
    UNION ALL
    SELECT p.proname || '()', 'EXECUTE', r.place, CASE WHEN has_function_privilege(r.name, p.oid, 'EXECUTE') THEN r.shown END
    FROM pg_proc AS p
    CROSS JOIN role AS r
    WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = $1::name)
)
SELECT o.object || ' ' || o.verb || ': ' || COALESCE(string_agg(o.who, ', ' ORDER BY o.place), 'nobody')
FROM right_of AS o
GROUP BY o.object, o.verb
ORDER BY o.object COLLATE "C", o.verb COLLATE "C";
