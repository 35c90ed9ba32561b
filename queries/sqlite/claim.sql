-- Claim: the ledger. A key is claimed before the work, in the caller's transaction; while that is open, all that write wait for it.

-- Claim takes a key that nobody has claimed yet; no row comes back when somebody has: FindClaims says how it stands.
-- Guard: the primary key. Index: claim_pkey. Locks: none beside the write lock.
-- name: Claim :many
INSERT INTO outbox_claim (tenant, scope, key, digest, token, claimed_at, held_until)
VALUES (
    sqlc.arg(tenant), sqlc.arg(scope), sqlc.arg(key), sqlc.arg(digest), sqlc.arg(token), sqlc.arg(claimed_at), sqlc.arg(held_until)
)
ON CONFLICT (tenant, scope, key) DO NOTHING
RETURNING epoch, held_until;

-- TakeClaim takes over a claim that failed, or whose holder let its time run out.
-- Guard: key, digest, failed or over. Index: claim_pkey. Locks: none beside the write lock.
-- name: TakeClaim :many
UPDATE outbox_claim
SET state = 0, token = CAST(sqlc.arg(token) AS BLOB), epoch = epoch + 1, claimed_at = CAST(sqlc.arg(now) AS INTEGER),
    held_until = CAST(sqlc.arg(held_until) AS INTEGER), ended_at = 253402214400000000, reason = ''
WHERE tenant = CAST(sqlc.arg(tenant) AS TEXT) AND scope = CAST(sqlc.arg(scope) AS TEXT) AND key = CAST(sqlc.arg(key) AS TEXT)
    AND digest = CAST(sqlc.arg(digest) AS BLOB)
    AND (state = 2 OR (state = 0 AND held_until <= CAST(sqlc.arg(now) AS INTEGER)))
RETURNING epoch, held_until;

-- EndClaim records what came of a claim: completed with its result, failed or rejected with a reason. A claim that is over but not taken by
-- anybody is still its holder's.
-- Guard: key and token, held. Index: claim_pkey. Locks: none beside the write lock.
-- name: EndClaim :many
UPDATE outbox_claim
SET state = CAST(sqlc.arg(state) AS INTEGER), token = x'00000000000000000000000000000000', held_until = -62135596800000000,
    ended_at = CAST(sqlc.arg(now) AS INTEGER), reason = CAST(sqlc.arg(reason) AS TEXT), result = CAST(sqlc.arg(result) AS BLOB)
WHERE tenant = CAST(sqlc.arg(tenant) AS TEXT) AND scope = CAST(sqlc.arg(scope) AS TEXT) AND key = CAST(sqlc.arg(key) AS TEXT)
    AND token = CAST(sqlc.arg(token) AS BLOB)
    AND state = 0
RETURNING epoch;

-- RecordClaim claims a key and ends the claim at once, completed or rejected: a receipt, written in the transaction of the work itself. No row comes
-- back when the key is taken.
-- Guard: the primary key. Index: claim_pkey. Locks: none beside the write lock.
-- name: RecordClaim :many
INSERT INTO outbox_claim (tenant, scope, key, digest, state, reason, claimed_at, ended_at)
VALUES (
    sqlc.arg(tenant), sqlc.arg(scope), sqlc.arg(key), sqlc.arg(digest), sqlc.arg(state), sqlc.arg(reason), sqlc.arg(now), sqlc.arg(now)
)
ON CONFLICT (tenant, scope, key) DO NOTHING
RETURNING epoch;

-- FindClaims says how the given keys stand, each {tenant, scope, key, digest in hex}. is_over: held, but longer than its holder asked for.
-- Guard: exact (tenant, scope, key). Index: claim_pkey. Locks: none.
-- name: FindClaims :many
SELECT
    CAST(g.key + 1 AS INT32) AS ordinal,
    CAST(c.digest = unhex(g.value ->> '$.digest') AS BOOLEAN) AS same_digest,
    CAST(c.state AS INT16) AS state, c.epoch, c.claimed_at, c.held_until, c.ended_at,
    CAST(c.state = 0 AND c.held_until <= CAST(sqlc.arg(now) AS INTEGER) AS BOOLEAN) AS is_over,
    c.reason, c.result, c.digest
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_claim AS c
    ON c.tenant = g.value ->> '$.tenant' AND c.scope = g.value ->> '$.scope' AND c.key = g.value ->> '$.key';
