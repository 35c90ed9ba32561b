-- Messages numbered $1 to $2 of one consumer, in any state that a workload needs, by statements over the whole set.
WITH given AS MATERIALIZED (
    SELECT
        nextval('outbox.message_id_seq') AS id,
        CASE WHEN $7::integer = 0 THEN '' ELSE 'tenant-' || i % $7::integer END AS tenant,
        CASE WHEN $8::integer = 0 THEN '' ELSE 'account-' || $12::integer + i % $8::integer END AS order_key
    FROM generate_series($1::integer, $2::integer) AS i
),
stored AS (
    INSERT INTO outbox.message (id, tenant, consumer, target, kind, key, order_key, digest, payload, max_age)
    SELECT id, tenant, $3::text, $4::text, $5::text, 'order-' || lpad(id::text, 10, '0'), order_key, decode(repeat('d1', 32), 'hex'), $6::bytea, $11::bigint
    FROM given
),
queued AS (
    INSERT INTO outbox.queue (message_id, consumer, target, kind, tenant, order_key, due_at, born_at, expires_at)
    SELECT
        id, $3, $4, $5, tenant, order_key, at.due, at.due, at.due + $11 * interval '1 microsecond'
    FROM given
    CROSS JOIN (SELECT statement_timestamp() + $9::bigint * interval '1 microsecond' AS due) AS at
    WHERE $10::bigint = 0
)
INSERT INTO outbox.settlement (message_id, epoch, attempt, replays, outcome, settled_at)
SELECT id, 1, 1, 0, 'delivered', statement_timestamp() - $10 * interval '1 microsecond'
FROM given
WHERE $10 > 0
