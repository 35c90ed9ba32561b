-- What Down does after the last migration is rolled back.

-- name: DropVersionTable
DROP TABLE outbox.schema_version;

-- Whether Up made the schema and nothing is left in it. An object that appears after this look makes the drop fail, not go.
-- name: IsOursAndEmpty
SELECT EXISTS (
    SELECT
    FROM pg_catalog.pg_namespace AS n
    WHERE n.nspname = $1::name
        AND obj_description(n.oid, 'pg_namespace') = 'made by fencepost'
        AND NOT EXISTS (
            SELECT
            FROM pg_catalog.pg_depend AS d
            WHERE d.refclassid = 'pg_catalog.pg_namespace'::regclass AND d.refobjid = n.oid AND d.deptype = 'n'
        )
);

-- name: DropSchema
DROP SCHEMA outbox;
