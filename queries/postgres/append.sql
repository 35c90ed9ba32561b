-- Append: facts, and how far their readers came, recorded in the caller's transaction.

-- AppendEvents stores the events of one call and answers with one row per input, in input order. Positions are drawn in input order; rows are
-- inserted in the order of their identity, so that two overlapping batches cannot deadlock. An id that exists is left alone and reported as
-- not stored: FindEvents says why. Of one id given twice the first is stored. No row comes back when the tables were restored from a dump and
-- AdoptStream has not run since.
-- Guard: the unique constraint (tenant, event_id); the incarnation's row is its own. A caller at REPEATABLE READ or above gets 40001 on a
-- concurrent duplicate. Index: event_id_unique to detect duplicates; plain inserts otherwise. Locks: the rows it inserts.
-- name: AppendEvents :many
WITH era AS (
    SELECT i.base + pg_current_xact_id()::text::bigint AS transaction_id
    FROM outbox.incarnation AS i
    WHERE i.written_by = i.xmin::text::bigint
),
given AS (
    SELECT
        nextval('outbox.event_position_seq') AS position,
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(streams)::text[]) AS stream,
        unnest(sqlc.arg(types)::text[]) AS type,
        unnest(sqlc.arg(event_ids)::text[]) AS event_id,
        unnest(sqlc.arg(digests)::bytea[]) AS digest,
        unnest(sqlc.arg(metadatas)::text[]) AS metadata,
        unnest(sqlc.arg(payloads)::bytea[]) AS payload
),
stored AS (
    INSERT INTO outbox.event (position, transaction_id, tenant, stream, type, event_id, digest, metadata, payload)
    SELECT g.position, e.transaction_id, g.tenant, g.stream, g.type, g.event_id, g.digest, g.metadata, g.payload
    FROM given AS g
    CROSS JOIN era AS e
    ORDER BY g.tenant, g.event_id, g.position
    ON CONFLICT (tenant, event_id) DO NOTHING
    RETURNING position
)
SELECT
    g.position::bigint AS position,
    (s.position IS NOT NULL)::boolean AS stored
FROM given AS g
CROSS JOIN era AS e
LEFT JOIN stored AS s ON s.position = g.position
ORDER BY g.position;

-- FindEvents says what stands under the given ids: for the events that AppendEvents did not store. It runs as a second statement, since the
-- first cannot see the winner of a race.
-- Guard: exact (tenant, event_id). Index: event_id_unique. Locks: none.
-- name: FindEvents :many
SELECT
    k.ordinal::integer AS ordinal,
    e.position,
    (e.digest = k.digest)::boolean AS same_digest
FROM (
    SELECT
        generate_subscripts(sqlc.arg(tenants)::text[], 1) AS ordinal,
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(event_ids)::text[]) AS event_id,
        unnest(sqlc.arg(digests)::bytea[]) AS digest
) AS k
CROSS JOIN LATERAL (
    SELECT x.position, x.digest
    FROM outbox.event AS x
    WHERE x.tenant = k.tenant AND x.event_id = k.event_id
    OFFSET 0
) AS e;

-- SaveReader remembers how far a named reader came, if it stands where the caller thinks (from_*, zeros for a reader that has saved nothing
-- yet) and the new place is of this incarnation. The one row says whether it was saved, and whether the incarnation is this one.
-- Guard: name, place, incarnation, which is the row's own. Index: reader_pkey. Locks: the reader's row.
-- name: SaveReader :many
WITH era AS (
    SELECT i.id FROM outbox.incarnation AS i WHERE i.id = sqlc.arg(incarnation)::text AND i.written_by = i.xmin::text::bigint
),
saved AS (
    INSERT INTO outbox.reader AS r (name, incarnation, transaction_id, position, digest)
    SELECT sqlc.arg(name)::text, e.id, sqlc.arg(transaction_id)::bigint, sqlc.arg(position)::bigint, sqlc.arg(digest)::bytea
    FROM era AS e
    WHERE sqlc.arg(from_position)::bigint = 0 OR EXISTS (SELECT FROM outbox.reader AS x WHERE x.name = sqlc.arg(name)::text)
    ON CONFLICT (name) DO UPDATE
    SET incarnation = EXCLUDED.incarnation, transaction_id = EXCLUDED.transaction_id, position = EXCLUDED.position, digest = EXCLUDED.digest,
        saved_at = clock_timestamp()
    WHERE r.transaction_id = sqlc.arg(from_transaction_id)::bigint AND r.position = sqlc.arg(from_position)::bigint
    RETURNING r.name
)
SELECT EXISTS (SELECT FROM saved)::boolean AS saved, EXISTS (SELECT FROM era)::boolean AS known;
