-- The tables of the core on SQLite: what schema/postgres/00001_core.sql makes, under the prefix outbox_ in place of a schema of its own.
-- Locks: the file's one write lock, for a moment. Old and new binaries: first version, none before it.
--
-- Conventions: an instant is an integer, microseconds since 1970 in UTC, so that order in the index is order in time; "never" is
-- -62135596800000000 (0001-01-01) for one in the past and 253402214400000000 (9999-12-31) for one in the future. Truth is 0 or 1. Texts are
-- NOT NULL with '' for absent; lengths are in bytes; durations are microseconds, 0 = none. Every table is STRICT, which refuses a value of
-- another type. Each bound that Go checks stands here again, so that a row written by hand cannot poison a sender.

-- +goose NO TRANSACTION
-- +goose Up

-- The immutable envelope: written once by the producer's transaction, read at each lease, deleted with its settlement. AUTOINCREMENT, since
-- the number of a purged message must not come back: with its epoch it is the fence.
CREATE TABLE outbox_message (
    id              INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    source_position INTEGER NOT NULL DEFAULT 0,
    max_age         INTEGER NOT NULL DEFAULT 0,
    created_at      INTEGER NOT NULL,
    priority        INTEGER NOT NULL DEFAULT 0,
    tenant          TEXT NOT NULL DEFAULT '',
    consumer        TEXT NOT NULL,
    target          TEXT NOT NULL,
    kind            TEXT NOT NULL,
    key             TEXT NOT NULL,
    order_key       TEXT NOT NULL DEFAULT '',
    source_event_id TEXT NOT NULL DEFAULT '',
    digest          BLOB NOT NULL,
    metadata        TEXT NOT NULL DEFAULT '',
    payload         BLOB NOT NULL DEFAULT x'',
    CONSTRAINT message_key_unique UNIQUE (tenant, consumer, key),
    CONSTRAINT message_id_check CHECK (id > 0),
    CONSTRAINT message_priority_check CHECK (priority BETWEEN -32768 AND 32767),
    CONSTRAINT message_tenant_check CHECK (instr(tenant, char(0)) = 0 AND octet_length(tenant) <= 128 AND tenant <> '*' AND (tenant = '' OR trim(tenant, char(9, 10, 11, 12, 13, 32)) <> '')),
    CONSTRAINT message_consumer_check CHECK (instr(consumer, char(0)) = 0 AND octet_length(consumer) <= 128 AND consumer <> '*' AND trim(consumer, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT message_target_check CHECK (instr(target, char(0)) = 0 AND octet_length(target) <= 128 AND target <> '*' AND trim(target, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT message_kind_check CHECK (instr(kind, char(0)) = 0 AND octet_length(kind) <= 128 AND kind <> '*' AND trim(kind, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT message_key_check CHECK (instr(key, char(0)) = 0 AND octet_length(key) <= 255 AND trim(key, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT message_order_key_check CHECK (instr(order_key, char(0)) = 0 AND octet_length(order_key) <= 128 AND (order_key = '' OR trim(order_key, char(9, 10, 11, 12, 13, 32)) <> '')),
    CONSTRAINT message_source_check CHECK (source_position >= 0 AND instr(source_event_id, char(0)) = 0 AND octet_length(source_event_id) <= 64),
    CONSTRAINT message_max_age_check CHECK (max_age BETWEEN 0 AND 3155760000000000),
    CONSTRAINT message_created_at_check CHECK (created_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT message_digest_check CHECK (octet_length(digest) = 32),
    CONSTRAINT message_metadata_check CHECK (instr(metadata, char(0)) = 0 AND octet_length(metadata) <= 65536),
    CONSTRAINT message_payload_check CHECK (octet_length(payload) <= 1048576)
) STRICT;

-- One narrow row per open message: the only table that is updated. state: 0 pending, 1 parked.
CREATE TABLE outbox_queue (
    message_id    INTEGER NOT NULL PRIMARY KEY,
    leased_by     INTEGER NOT NULL DEFAULT 0,
    epoch         INTEGER NOT NULL DEFAULT 0,
    due_at        INTEGER NOT NULL,
    born_at       INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL DEFAULT 253402214400000000,
    leased_until  INTEGER NOT NULL DEFAULT -62135596800000000,
    replayed_at   INTEGER NOT NULL DEFAULT -62135596800000000,
    attempt       INTEGER NOT NULL DEFAULT 0,
    attempt_limit INTEGER NOT NULL DEFAULT 0,
    replays       INTEGER NOT NULL DEFAULT 0,
    priority      INTEGER NOT NULL DEFAULT 0,
    state         INTEGER NOT NULL DEFAULT 0,
    unsure        INTEGER NOT NULL DEFAULT 0,
    token         BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
    consumer      TEXT NOT NULL,
    target        TEXT NOT NULL,
    kind          TEXT NOT NULL,
    tenant        TEXT NOT NULL DEFAULT '',
    order_key     TEXT NOT NULL DEFAULT '',
    last_error    TEXT NOT NULL DEFAULT '',
    CONSTRAINT queue_lease_check CHECK ((token = x'00000000000000000000000000000000') = (leased_until = -62135596800000000)),
    CONSTRAINT queue_token_check CHECK (octet_length(token) = 16),
    CONSTRAINT queue_state_check CHECK (state = 0 OR (state = 1 AND token = x'00000000000000000000000000000000')),
    CONSTRAINT queue_count_check CHECK (attempt BETWEEN 0 AND 10000 AND attempt_limit BETWEEN 0 AND 10000 AND epoch >= attempt AND replays >= 0),
    CONSTRAINT queue_due_at_check CHECK (due_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT queue_age_check CHECK (born_at >= 946684800000000 AND expires_at BETWEEN born_at AND 253402214400000000),
    CONSTRAINT queue_past_check CHECK (leased_until BETWEEN -62135596800000000 AND 253402214400000000
        AND replayed_at BETWEEN -62135596800000000 AND 253402214400000000),
    CONSTRAINT queue_unsure_check CHECK (unsure IN (0, 1)),
    CONSTRAINT queue_last_error_check CHECK (octet_length(last_error) <= 256)
) STRICT;

-- Leasing: a lane's due rows from its watermark on.
CREATE INDEX outbox_queue_due ON outbox_queue (consumer, target, kind, tenant, priority, due_at, message_id) WHERE state = 0;
-- Order keys: the head of a key.
CREATE INDEX outbox_queue_order ON outbox_queue (consumer, target, tenant, order_key, message_id) WHERE order_key <> '';
-- Operators: parked messages by lane, oldest first.
CREATE INDEX outbox_queue_parked ON outbox_queue (consumer, target, kind, tenant, message_id) WHERE state = 1;

-- One row per order key with a live lease, or blocked by a dead message that holds its key.
CREATE TABLE outbox_order_lease (
    message_id   INTEGER NOT NULL,
    leased_until INTEGER NOT NULL,
    blocked      INTEGER NOT NULL DEFAULT 0,
    consumer     TEXT NOT NULL,
    target       TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    order_key    TEXT NOT NULL,
    CONSTRAINT order_lease_pkey PRIMARY KEY (consumer, target, tenant, order_key),
    CONSTRAINT order_lease_name_check CHECK (octet_length(consumer) BETWEEN 1 AND 128 AND octet_length(target) BETWEEN 1 AND 128
        AND octet_length(tenant) <= 128 AND octet_length(order_key) BETWEEN 1 AND 128),
    CONSTRAINT order_lease_blocked_check CHECK (blocked IN (0, 1)),
    CONSTRAINT order_lease_until_check CHECK (leased_until BETWEEN -62135596800000000 AND 253402214400000000
        AND (NOT blocked OR leased_until = -62135596800000000))
) STRICT, WITHOUT ROWID;

-- Ending a lease: the order leases of the messages it ends.
CREATE INDEX outbox_order_lease_message ON outbox_order_lease (message_id);

-- The terminal record: inserted once, never updated, deleted by replay and purge.
CREATE TABLE outbox_settlement (
    message_id  INTEGER NOT NULL PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    settled_by  INTEGER NOT NULL DEFAULT 0,
    settled_at  INTEGER NOT NULL,
    replayed_at INTEGER NOT NULL DEFAULT -62135596800000000,
    attempt     INTEGER NOT NULL,
    replays     INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    cause       TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    result      TEXT NOT NULL DEFAULT '',
    CONSTRAINT settlement_outcome_check CHECK (outcome IN ('delivered', 'dead', 'cancelled', 'expired')),
    CONSTRAINT settlement_cause_check CHECK (
        (outcome = 'dead' AND cause IN ('permanent', 'moot', 'attempts', 'age', 'exhausted') AND trim(reason, char(9, 10, 11, 12, 13, 32)) <> '')
        OR (outcome <> 'dead' AND cause = '')),
    CONSTRAINT settlement_count_check CHECK (epoch >= 0 AND attempt BETWEEN 0 AND 10000 AND replays >= 0),
    CONSTRAINT settlement_at_check CHECK (settled_at BETWEEN 946684800000000 AND 253402214400000000
        AND replayed_at BETWEEN -62135596800000000 AND 253402214400000000),
    CONSTRAINT settlement_reason_check CHECK (octet_length(reason) <= 4096),
    CONSTRAINT settlement_result_check CHECK (octet_length(result) <= 4096 AND (result = '' OR outcome = 'delivered'))
) STRICT;

-- Operators and the janitor: what is not delivered, by outcome, age and id, which every index ends with; named as well, no row value would seek
-- by it. Delivered ones are purged along the primary key.
CREATE INDEX outbox_settlement_undelivered ON outbox_settlement (outcome, settled_at) WHERE outcome <> 'delivered';

-- Running senders: a name is a label, never a fence. seen_at is touched every 10 s.
CREATE TABLE outbox_worker (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    host       TEXT NOT NULL,
    CONSTRAINT worker_name_check CHECK (octet_length(name) <= 128 AND trim(name, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT worker_host_check CHECK (octet_length(host) <= 255),
    CONSTRAINT worker_at_check CHECK (started_at BETWEEN 946684800000000 AND 253402214400000000
        AND seen_at BETWEEN 946684800000000 AND 253402214400000000)
) STRICT;

CREATE INDEX outbox_worker_name ON outbox_worker (name);

-- Kill switches; each name may be the wildcard '*'. mode: 0 stop leasing, 1 also cancel running handlers.
CREATE TABLE outbox_pause (
    paused_at INTEGER NOT NULL,
    mode      INTEGER NOT NULL DEFAULT 0,
    consumer  TEXT NOT NULL,
    target    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    tenant    TEXT NOT NULL,
    actor     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    CONSTRAINT pause_pkey PRIMARY KEY (consumer, target, kind, tenant),
    CONSTRAINT pause_mode_check CHECK (mode IN (0, 1)),
    CONSTRAINT pause_at_check CHECK (paused_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT pause_name_check CHECK (octet_length(consumer) BETWEEN 1 AND 128 AND octet_length(target) BETWEEN 1 AND 128
        AND octet_length(kind) BETWEEN 1 AND 128 AND octet_length(tenant) <= 128),
    CONSTRAINT pause_actor_check CHECK (octet_length(actor) <= 128 AND trim(actor, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT pause_reason_check CHECK (octet_length(reason) <= 4096 AND trim(reason, char(9, 10, 11, 12, 13, 32)) <> '')
) STRICT, WITHOUT ROWID;

-- What operators did, written in the transaction that does it. message_id 0 = not about one message.
CREATE TABLE outbox_audit (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id INTEGER NOT NULL DEFAULT 0,
    at         INTEGER NOT NULL,
    action     TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    detail     TEXT NOT NULL DEFAULT '',
    CONSTRAINT audit_at_check CHECK (at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT audit_detail_check CHECK (octet_length(detail) <= 512),
    CONSTRAINT audit_action_check CHECK (action IN ('cancel', 'replay', 'resolve', 'pause', 'resume', 'release', 'unblock')),
    CONSTRAINT audit_actor_check CHECK (octet_length(actor) <= 128 AND trim(actor, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT audit_reason_check CHECK (octet_length(reason) <= 4096 AND trim(reason, char(9, 10, 11, 12, 13, 32)) <> '')
) STRICT;

CREATE INDEX outbox_audit_message ON outbox_audit (message_id) WHERE message_id <> 0;

-- +goose Down

DROP TABLE outbox_audit;
DROP TABLE outbox_pause;
DROP TABLE outbox_worker;
DROP TABLE outbox_settlement;
DROP TABLE outbox_order_lease;
DROP TABLE outbox_queue;
DROP TABLE outbox_message;
