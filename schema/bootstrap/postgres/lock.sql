-- The lock that lets one process at a time change the schema, and what bounds the waiting for other locks.

-- Waiting for another migrator takes as long as it takes; a role's default must not end it (transaction_timeout is new in 17).
-- name: LiftWaitLimits
SELECT set_config(s.name, '0', true)
FROM pg_catalog.pg_settings AS s
WHERE s.name IN ('lock_timeout', 'statement_timeout', 'transaction_timeout');

-- Schemas of different names do not wait for each other. The lock ends with the transaction, however that ends.
-- name: Lock
SELECT pg_advisory_xact_lock(hashtextextended('fencepost schema ' || $1::text, 0));

-- From here on the transaction idles while migrations run on another connection. Being sent after Lock and without parameters,
-- this also ends the portal in which drivers leave Lock, and with it a snapshot that would keep vacuum from its work.
-- name: LiftIdleLimit
SET LOCAL idle_in_transaction_session_timeout = 0;

-- DDL that waits makes everybody else wait behind it. Config.LockTimeout takes the place of the value.
-- name: LimitLockWaits
SET LOCAL lock_timeout = '5s';

-- Who may have kept a statement waiting for the past $2 microseconds: the sessions and prepared transactions that hold a lock
-- on a table of the schema and were there before the wait. Those who queued up behind it began later. Without the rights of
-- pg_read_all_stats the instants of other roles are NULL: then all holders are listed. Never their queries, which may hold data.
-- name: ListBlockers
SELECT
    COALESCE(l.pid, 0) AS pid,
    COALESCE(a.usename::text, '') AS role,
    COALESCE(NULLIF(a.application_name, ''), a.backend_type, '') AS application,
    COALESCE(a.state, '') AS state,
    COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, 0) AS transaction_age,
    COALESCE((extract(epoch FROM clock_timestamp() - a.query_start) * 1000000)::bigint, 0) AS query_age
FROM pg_catalog.pg_locks AS l
JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation'
    AND l.granted
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
    AND n.nspname = $1::name
    AND (a.xact_start IS NULL OR a.xact_start <= clock_timestamp() - $2::bigint * interval '1 microsecond')
GROUP BY 1, 2, 3, 4, a.xact_start, a.query_start
ORDER BY a.xact_start, pid
LIMIT 3;
