-- What comes before the first migration on SQLite. The text of a statement is what follows its name.

-- Where goose keeps the applied versions, in the form of the other tables: instants are microseconds.
-- name: CreateVersionTable
CREATE TABLE outbox_schema_version (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL,
    is_applied INTEGER NOT NULL,
    tstamp     INTEGER NOT NULL
) STRICT;

INSERT INTO outbox_schema_version (version_id, is_applied, tstamp)
VALUES (0, 1, CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000);
