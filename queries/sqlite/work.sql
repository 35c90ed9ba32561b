-- Work: the clock and the lock of a transaction, the registry of running senders, and what a process checks before its first lease.
--
-- SQLite has no statement that changes several tables, so an operation may be several queries in one write transaction; their names begin with
-- that of the operation. One transaction writes at a time, whatever process it is in: what an operation has read stays so until it commits,
-- and nothing needs to be locked row by row or looked at again.

-- BecomeWriter takes the write lock before anything is read, also in a transaction that was begun as a reader; it changes nothing.
-- Guard: none. Index: none. Locks: the file's one write lock, which every other writer waits for.
-- name: BecomeWriter :exec
DELETE FROM outbox_pause
WHERE false;

-- ReadClock reads the clock once an operation, in microseconds and to the millisecond, which is what SQLite has.
-- Guard: none. Index: none. Locks: none.
-- name: ReadClock :one
SELECT CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now;

-- RegisterWorker records a running sender; its id stands in the leases it takes. Guard: none. Index: the primary key. Locks: none.
-- name: RegisterWorker :many
INSERT INTO outbox_worker (name, host, started_at, seen_at)
VALUES (CAST(sqlc.arg(name) AS TEXT), CAST(sqlc.arg(host) AS TEXT), CAST(sqlc.arg(now) AS INTEGER), CAST(sqlc.arg(now) AS INTEGER))
RETURNING id;

-- TouchWorkers says that senders are alive; no row comes back for one whose record was purged, and it registers anew.
-- Guard: ids. Index: the primary key. Locks: none.
-- name: TouchWorkers :many
UPDATE outbox_worker
SET seen_at = CAST(sqlc.arg(now) AS INTEGER)
WHERE id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i)
RETURNING id;

-- FindCredential reads what a named worker is verified by, a row for each consumer and tenant that it is let in for; none comes back for a name
-- that nobody has. Guard: exact name. Index: credential_pkey, credential_scope_pkey. Locks: none.
-- name: FindCredential :many
SELECT
    c.salt, c.hash, CAST(c.iterations AS INT32) AS iterations, CAST(c.revoked_at <> 253402214400000000 AS BOOLEAN) AS revoked, s.consumer, s.tenant
FROM outbox_credential AS c
CROSS JOIN outbox_credential_scope AS s ON s.name = c.name
WHERE c.name = CAST(sqlc.arg(name) AS TEXT);

-- ReadVersion reads the newest applied migration. Guard: none. Index: none, the table has a row a migration. Locks: none.
-- name: ReadVersion :many
SELECT CAST(COALESCE(MAX(v.version_id), 0) AS INTEGER) AS version
FROM outbox_schema_version AS v
WHERE v.is_applied;
