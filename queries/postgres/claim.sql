-- Claim: the ledger. A key is claimed before the work, in the caller's transaction; while that is open, others that claim the key wait for it.
-- Instants are microseconds since 1970 and bytes are hex, since a caller's DateStyle and bytea_output may be such that his driver cannot read them.

-- Claim takes a key that nobody has claimed yet; no row comes back when somebody has: FindClaims says how it stands.
-- Guard: the primary key. A caller at REPEATABLE READ or above gets 40001 on a concurrent claim. Index: claim_pkey. Locks: the row.
-- name: Claim :many
INSERT INTO outbox.claim (tenant, scope, key, digest, token, held_until)
VALUES (
    sqlc.arg(tenant)::text, sqlc.arg(scope)::text, sqlc.arg(key)::text, sqlc.arg(digest)::bytea, sqlc.arg(token)::bytea,
    clock_timestamp() + sqlc.arg(hold)::bigint * interval '1 microsecond'
)
ON CONFLICT (tenant, scope, key) DO NOTHING
RETURNING epoch, (extract(epoch FROM held_until) * 1000000)::bigint AS held_until;

-- TakeClaim takes over a claim that failed, or whose holder let its time run out.
-- Guard: key, digest, failed or over. Index: claim_pkey. Locks: the row.
-- name: TakeClaim :many
UPDATE outbox.claim AS c
SET state = 0, token = sqlc.arg(token)::bytea, epoch = c.epoch + 1, claimed_at = clock_timestamp(),
    held_until = clock_timestamp() + sqlc.arg(hold)::bigint * interval '1 microsecond', ended_at = '9999-12-31 00:00:00+00', reason = ''
WHERE c.tenant = sqlc.arg(tenant)::text AND c.scope = sqlc.arg(scope)::text AND c.key = sqlc.arg(key)::text
    AND c.digest = sqlc.arg(digest)::bytea
    AND (c.state = 2 OR (c.state = 0 AND c.held_until <= clock_timestamp()))
RETURNING c.epoch, (extract(epoch FROM c.held_until) * 1000000)::bigint AS held_until;

-- EndClaim records what came of a claim: completed with its result, failed or rejected with a reason. A claim that is over but not taken by
-- anybody is still its holder's.
-- Guard: key and token, held. Index: claim_pkey. Locks: the row.
-- name: EndClaim :many
UPDATE outbox.claim AS c
SET state = sqlc.arg(state)::smallint, token = E'\\x00000000000000000000000000000000', held_until = '0001-01-01 00:00:00+00',
    ended_at = clock_timestamp(), reason = sqlc.arg(reason)::text, result = sqlc.arg(result)::bytea
WHERE c.tenant = sqlc.arg(tenant)::text AND c.scope = sqlc.arg(scope)::text AND c.key = sqlc.arg(key)::text
    AND c.token = sqlc.arg(token)::bytea
    AND c.state = 0
RETURNING c.epoch;

-- RecordClaim claims a key and ends the claim at once, completed or rejected: a receipt, written in the transaction of the work itself. No row comes
-- back when the key is taken.
-- Guard: the primary key. A caller at REPEATABLE READ or above gets 40001 on a concurrent claim. Index: claim_pkey. Locks: the row.
-- name: RecordClaim :many
INSERT INTO outbox.claim (tenant, scope, key, digest, state, reason, ended_at)
VALUES (
    sqlc.arg(tenant)::text, sqlc.arg(scope)::text, sqlc.arg(key)::text, sqlc.arg(digest)::bytea, sqlc.arg(state)::smallint,
    sqlc.arg(reason)::text, clock_timestamp()
)
ON CONFLICT (tenant, scope, key) DO NOTHING
RETURNING epoch;

-- FindClaims says how the given keys stand. over: held, but longer than its holder asked for.
-- Guard: exact (tenant, scope, key). Index: claim_pkey. Locks: none.
-- name: FindClaims :many
SELECT
    k.ordinal::integer AS ordinal,
    (c.digest = k.digest)::boolean AS same_digest,
    c.state, c.epoch,
    (extract(epoch FROM c.claimed_at) * 1000000)::bigint AS claimed_at,
    (extract(epoch FROM c.held_until) * 1000000)::bigint AS held_until,
    (extract(epoch FROM c.ended_at) * 1000000)::bigint AS ended_at,
    (c.state = 0 AND c.held_until <= clock_timestamp())::boolean AS over,
    c.reason, encode(c.result, 'hex')::text AS result, encode(c.digest, 'hex')::text AS digest
FROM (
    SELECT
        generate_subscripts(sqlc.arg(tenants)::text[], 1) AS ordinal,
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(scopes)::text[]) AS scope,
        unnest(sqlc.arg(keys)::text[]) AS key,
        unnest(sqlc.arg(digests)::bytea[]) AS digest
) AS k
CROSS JOIN LATERAL (
    SELECT x.state, x.epoch, x.claimed_at, x.held_until, x.ended_at, x.reason, x.result, x.digest
    FROM outbox.claim AS x
    WHERE x.tenant = k.tenant AND x.scope = k.scope AND x.key = k.key
    OFFSET 0
) AS c;
