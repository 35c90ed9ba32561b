-- Facts and claims on SQLite: what schema/postgres/00002_events.sql makes, under the prefix outbox_ in place of a schema of its own.
-- Locks: the file's one write lock, for a moment. Old and new binaries: one that knows version 1 uses none of this.
--
-- Conventions: as in 00001_core.sql.

-- +goose NO TRANSACTION
-- +goose Up

-- What happened, append-only: written once by the producer's transaction, deleted by retention. One transaction writes at a time, so positions
-- are in the order of the commits and serve as transaction numbers, too. AUTOINCREMENT, since the position of a purged event must not come back.
CREATE TABLE outbox_event (
    position       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    transaction_id INTEGER NOT NULL GENERATED ALWAYS AS (position) VIRTUAL,
    recorded_at    INTEGER NOT NULL,
    tenant         TEXT NOT NULL DEFAULT '',
    stream         TEXT NOT NULL DEFAULT '',
    type           TEXT NOT NULL,
    event_id       TEXT NOT NULL,
    digest         BLOB NOT NULL,
    metadata       TEXT NOT NULL DEFAULT '',
    payload        BLOB NOT NULL DEFAULT x'',
    CONSTRAINT event_id_unique UNIQUE (tenant, event_id),
    CONSTRAINT event_position_check CHECK (position > 0),
    CONSTRAINT event_recorded_at_check CHECK (recorded_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT event_tenant_check CHECK (instr(tenant, char(0)) = 0 AND octet_length(tenant) <= 128 AND tenant <> '*' AND (tenant = '' OR trim(tenant, char(9, 10, 11, 12, 13, 32)) <> '')),
    CONSTRAINT event_stream_check CHECK (instr(stream, char(0)) = 0 AND octet_length(stream) <= 128 AND (stream = '' OR trim(stream, char(9, 10, 11, 12, 13, 32)) <> '')),
    CONSTRAINT event_type_check CHECK (instr(type, char(0)) = 0 AND octet_length(type) <= 128 AND type <> '*' AND trim(type, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT event_event_id_check CHECK (instr(event_id, char(0)) = 0 AND octet_length(event_id) <= 64 AND trim(event_id, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT event_digest_check CHECK (octet_length(digest) = 32),
    CONSTRAINT event_metadata_check CHECK (instr(metadata, char(0)) = 0 AND octet_length(metadata) <= 65536),
    CONSTRAINT event_payload_check CHECK (octet_length(payload) <= 1048576)
) STRICT;

-- The one row that names the stream; purged_* name the last event that retention removed. A file that comes out of a backup has no sign of it:
-- a cursor of what was lost is unknown, since the event at its position is not there or is another.
CREATE TABLE outbox_incarnation (
    purged_transaction_id INTEGER NOT NULL DEFAULT 0,
    purged_position       INTEGER NOT NULL DEFAULT 0,
    one                   INTEGER NOT NULL DEFAULT 1,
    id                    TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    purged_digest         BLOB NOT NULL DEFAULT x'',
    CONSTRAINT incarnation_pkey PRIMARY KEY (one),
    CONSTRAINT incarnation_one_check CHECK (one = 1),
    CONSTRAINT incarnation_id_check CHECK (instr(id, char(0)) = 0 AND octet_length(id) = 32 AND id NOT GLOB '*[^0-9a-f]*'),
    CONSTRAINT incarnation_purged_check CHECK (purged_transaction_id >= 0 AND purged_position >= 0 AND octet_length(purged_digest) IN (0, 32))
) STRICT;

INSERT INTO outbox_incarnation (one) VALUES (1);

-- How far a named reader came; retention stops there.
CREATE TABLE outbox_reader (
    transaction_id INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    saved_at       INTEGER NOT NULL,
    name           TEXT NOT NULL,
    incarnation    TEXT NOT NULL,
    digest         BLOB NOT NULL,
    CONSTRAINT reader_pkey PRIMARY KEY (name),
    CONSTRAINT reader_name_check CHECK (instr(name, char(0)) = 0 AND octet_length(name) <= 128 AND trim(name, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT reader_place_check CHECK (transaction_id >= 0 AND position >= 0 AND instr(incarnation, char(0)) = 0 AND octet_length(incarnation) = 32
        AND octet_length(digest) <= 32),
    CONSTRAINT reader_saved_at_check CHECK (saved_at BETWEEN 946684800000000 AND 253402214400000000)
) STRICT, WITHOUT ROWID;

-- The ledger: a key claimed before the work. state: 0 held, 1 completed, 2 failed (free to be claimed again), 3 rejected.
CREATE TABLE outbox_claim (
    epoch      INTEGER NOT NULL DEFAULT 1,
    claimed_at INTEGER NOT NULL,
    held_until INTEGER NOT NULL DEFAULT -62135596800000000,
    ended_at   INTEGER NOT NULL DEFAULT 253402214400000000,
    state      INTEGER NOT NULL DEFAULT 0,
    token      BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
    tenant     TEXT NOT NULL DEFAULT '',
    scope      TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     BLOB NOT NULL,
    reason     TEXT NOT NULL DEFAULT '',
    result     BLOB NOT NULL DEFAULT x'',
    over_at    INTEGER NOT NULL GENERATED ALWAYS AS (CASE WHEN state = 0 THEN held_until ELSE ended_at END) VIRTUAL,
    CONSTRAINT claim_pkey PRIMARY KEY (tenant, scope, key),
    CONSTRAINT claim_state_check CHECK (state BETWEEN 0 AND 3
        AND (state = 0) = (token <> x'00000000000000000000000000000000')
        AND (state = 0) = (held_until <> -62135596800000000)
        AND (state = 0) = (ended_at = 253402214400000000)),
    CONSTRAINT claim_epoch_check CHECK (epoch > 0),
    CONSTRAINT claim_token_check CHECK (octet_length(token) = 16),
    CONSTRAINT claim_at_check CHECK (claimed_at BETWEEN 946684800000000 AND 253402214400000000
        AND held_until BETWEEN -62135596800000000 AND 253402214400000000
        AND ended_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT claim_tenant_check CHECK (instr(tenant, char(0)) = 0 AND octet_length(tenant) <= 128 AND tenant <> '*' AND (tenant = '' OR trim(tenant, char(9, 10, 11, 12, 13, 32)) <> '')),
    CONSTRAINT claim_scope_check CHECK (instr(scope, char(0)) = 0 AND octet_length(scope) <= 128 AND trim(scope, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT claim_key_check CHECK (instr(key, char(0)) = 0 AND octet_length(key) <= 255 AND trim(key, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT claim_digest_check CHECK (octet_length(digest) = 32),
    CONSTRAINT claim_reason_check CHECK (instr(reason, char(0)) = 0 AND octet_length(reason) <= 4096 AND (state IN (2, 3)) = (reason <> '')),
    CONSTRAINT claim_result_check CHECK (octet_length(result) <= 1048576 AND (state = 1 OR octet_length(result) = 0))
) STRICT;

-- Retention: since when nobody holds it, oldest first.
CREATE INDEX outbox_claim_over ON outbox_claim (over_at, tenant, scope, key);

-- Claims whose holder let their time run out, and that nobody took.
CREATE INDEX outbox_claim_held ON outbox_claim (held_until) WHERE state = 0;

-- +goose Down

DROP TABLE outbox_claim;
DROP TABLE outbox_reader;
DROP TABLE outbox_incarnation;
DROP TABLE outbox_event;
