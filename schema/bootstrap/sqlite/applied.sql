-- What is there, and which versions of it: schema/bootstrap/postgres/version.sql on SQLite.

-- A file needs no schema made.
-- name: Inspect
SELECT
    1 AS has_schema,
    EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.type = 'table' AND s.name = ?1 || '_schema_version') AS has_versions;

-- name: ServerEncoding
PRAGMA encoding;

-- Newest first, by the order in which they were applied.
-- name: ListVersions
SELECT version_id, tstamp
FROM outbox_schema_version
ORDER BY id DESC;

-- name: NewestVersion
SELECT max(version_id)
FROM outbox_schema_version;

-- The clock is the one of queries/sqlite: milliseconds, as microseconds.
-- name: InsertVersion
INSERT INTO outbox_schema_version (version_id, is_applied, tstamp)
VALUES (?1, 1, CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000);

-- name: DeleteVersion
DELETE FROM outbox_schema_version
WHERE version_id = ?1;

-- name: DropVersionTable
DROP TABLE outbox_schema_version;
