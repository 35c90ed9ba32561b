-- What is there, and which versions of it.

-- name: Inspect
SELECT
    EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1::name) AS has_schema,
    EXISTS (
        SELECT
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1::name AND c.relname = 'schema_version'
    ) AS has_versions;

-- name: ServerEncoding
SELECT current_setting('server_encoding');

-- Newest first, by the order in which they were applied.
-- name: ListVersions
SELECT version_id, tstamp
FROM outbox.schema_version
ORDER BY id DESC;

-- name: NewestVersion
SELECT max(version_id)
FROM outbox.schema_version;

-- name: InsertVersion
INSERT INTO outbox.schema_version (version_id, is_applied) VALUES ($1::bigint, true);

-- name: DeleteVersion
DELETE FROM outbox.schema_version
WHERE version_id = $1::bigint;
