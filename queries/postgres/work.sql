-- Work: the registry of running senders, and what a process checks before its first lease.

-- RegisterWorker records a running sender; its id stands in the leases it takes. Guard: none. Index: worker_pkey. Locks: the new row.
-- name: RegisterWorker :many
INSERT INTO outbox.worker (name, host)
VALUES (sqlc.arg(name)::text, sqlc.arg(host)::text)
RETURNING id;

-- TouchWorkers says that senders are alive; no row comes back for one whose record was purged, and it registers anew.
-- Guard: ids. Index: worker_pkey. Locks: the rows, in id order.
-- name: TouchWorkers :many
UPDATE outbox.worker AS w
SET seen_at = clock_timestamp()
WHERE w.id = ANY (sqlc.arg(ids)::bigint[])
RETURNING w.id;

-- CheckRole reads what the session's role may do and whether it may do too much: lease and settle are false when a privilege that a sender
-- needs is missing; owner is true for a member of the owning role too. schema_name is the schema's. Guard: none. Index: the catalogue's. Locks: none.
-- name: CheckRole :many
SELECT
    (
        SELECT count(*) = 5
        FROM pg_catalog.pg_class AS c
        INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = sqlc.arg(schema_name)::text
            -- Of columns one that nobody but a sender writes. CASE, since a column that a table lacks is an error.
            AND CASE c.relname
                WHEN 'message' THEN has_table_privilege(c.oid, 'SELECT')
                WHEN 'pause' THEN has_table_privilege(c.oid, 'SELECT')
                WHEN 'worker' THEN has_column_privilege(c.oid, 'name', 'INSERT') AND has_column_privilege(c.oid, 'seen_at', 'UPDATE')
                WHEN 'queue' THEN has_table_privilege(c.oid, 'SELECT') AND has_column_privilege(c.oid, 'epoch', 'UPDATE')
                WHEN 'order_lease' THEN has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                    AND has_any_column_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
            END
    )::boolean AS may_lease,
    (
        SELECT count(*) = 2
        FROM pg_catalog.pg_class AS c
        INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = sqlc.arg(schema_name)::text
            AND CASE c.relname
                WHEN 'queue' THEN has_table_privilege(c.oid, 'DELETE')
                WHEN 'settlement' THEN has_table_privilege(c.oid, 'SELECT') AND has_column_privilege(c.oid, 'result', 'INSERT')
            END
    )::boolean AS may_settle,
    r.rolsuper::boolean AS superuser,
    r.rolbypassrls::boolean AS bypass_rls,
    EXISTS (
        SELECT
        FROM pg_catalog.pg_class AS c
        INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = sqlc.arg(schema_name)::text AND c.relname = 'queue' AND pg_has_role(r.oid, c.relowner, 'MEMBER')
    )::boolean AS owner
FROM pg_catalog.pg_roles AS r
WHERE r.rolname = current_user;

-- FindCredential reads what a named worker is verified by, a row for each consumer and tenant that it is let in for; none comes back for a name
-- that nobody has. Guard: exact name. Index: credential_pkey, credential_scope_pkey. Locks: none.
-- name: FindCredential :many
SELECT
    c.salt, c.hash, c.iterations, (c.revoked_at <> '9999-12-31 00:00:00+00')::boolean AS revoked, s.consumer, s.tenant
FROM outbox.credential AS c
INNER JOIN outbox.credential_scope AS s ON s.name = c.name
WHERE c.name = sqlc.arg(name)::text;

-- ReadVersion reads the newest applied migration. Guard: none. Index: schema_version_pkey. Locks: none.
-- name: ReadVersion :many
SELECT COALESCE(max(v.version_id), 0)::bigint AS version
FROM outbox.schema_version AS v
WHERE v.is_applied;

-- Settings are those of a transaction of our own. With the planner's a plan cached on an empty queue stays right on a full one, and it is cached: by
-- its costs, which what is switched off distorts, the server would plan a lease anew each time, for a millisecond. The formats are those that a driver
-- reads where it asks for text.
-- Guard: none. Index: none. Locks: none.
-- name: Settings :exec
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true),
    set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('bytea_output', 'hex', true),
    set_config('DateStyle', 'ISO', true);

-- Notify wakes listeners: a hint of constant size. Guard: none. Index: none. Locks: the server's notification queue at commit.
-- name: Notify :exec
SELECT pg_notify(sqlc.arg(channel)::text, '');
