-- Batches on SQLite: what schema/postgres/00005_batch.sql makes, under the prefix outbox_ in place of a schema of its own.
-- Locks: the file's one write lock, for a moment. Old and new binaries: one that knows version 4 uses none of this; what it settles, cancels,
-- replays and purges is recorded like anybody's.
--
-- Conventions: as in 00001_core.sql.

-- +goose NO TRANSACTION
-- +goose Up

-- One job. run rises by one each time a completed batch is opened again. complete_* is the message that its completion records,
-- complete_consumer '' for none: each run has one, from the second on with the run behind its key.
CREATE TABLE outbox_batch (
    id                INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    created_at        INTEGER NOT NULL,
    sealed_at         INTEGER NOT NULL DEFAULT 253402214400000000,
    completed_at      INTEGER NOT NULL DEFAULT 253402214400000000,
    run               INTEGER NOT NULL DEFAULT 1,
    complete_priority INTEGER NOT NULL DEFAULT 0,
    tenant            TEXT NOT NULL DEFAULT '',
    consumer          TEXT NOT NULL,
    target            TEXT NOT NULL,
    kind              TEXT NOT NULL,
    key               TEXT NOT NULL,
    digest            BLOB NOT NULL,
    complete_consumer TEXT NOT NULL DEFAULT '',
    complete_target   TEXT NOT NULL DEFAULT '',
    complete_kind     TEXT NOT NULL DEFAULT '',
    complete_key      TEXT NOT NULL DEFAULT '',
    complete_digest   BLOB NOT NULL DEFAULT x'',
    complete_metadata TEXT NOT NULL DEFAULT '',
    complete_payload  BLOB NOT NULL DEFAULT x'',
    CONSTRAINT batch_key_unique UNIQUE (tenant, consumer, key),
    CONSTRAINT batch_id_check CHECK (id > 0),
    CONSTRAINT batch_at_check CHECK (created_at BETWEEN 946684800000000 AND 253402214400000000
        AND sealed_at BETWEEN 946684800000000 AND 253402214400000000
        AND completed_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT batch_sealed_check CHECK (sealed_at < 253402214400000000 OR completed_at = 253402214400000000),
    CONSTRAINT batch_run_check CHECK (run > 0),
    CONSTRAINT batch_tenant_check CHECK (instr(tenant, char(0)) = 0 AND octet_length(tenant) <= 128 AND tenant <> '*' AND (tenant = '' OR trim(tenant, char(9, 10, 11, 12, 13, 32)) <> '')),
    CONSTRAINT batch_consumer_check CHECK (instr(consumer, char(0)) = 0 AND octet_length(consumer) <= 128 AND consumer <> '*' AND trim(consumer, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT batch_target_check CHECK (instr(target, char(0)) = 0 AND octet_length(target) <= 128 AND target <> '*' AND trim(target, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT batch_kind_check CHECK (instr(kind, char(0)) = 0 AND octet_length(kind) <= 128 AND kind <> '*' AND trim(kind, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT batch_key_check CHECK (instr(key, char(0)) = 0 AND octet_length(key) <= 200 AND trim(key, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT batch_digest_check CHECK (octet_length(digest) = 32),
    -- What message demands of a row, so that no completion fails.
    CONSTRAINT batch_complete_check CHECK (
        (complete_consumer = '' AND complete_target = '' AND complete_kind = '' AND complete_key = '' AND complete_priority = 0
            AND octet_length(complete_digest) = 0 AND complete_metadata = '' AND octet_length(complete_payload) = 0)
        OR (instr(complete_consumer, char(0)) = 0 AND octet_length(complete_consumer) <= 128 AND complete_consumer <> '*'
            AND trim(complete_consumer, char(9, 10, 11, 12, 13, 32)) <> ''
            AND instr(complete_target, char(0)) = 0 AND octet_length(complete_target) <= 128 AND complete_target <> '*'
            AND trim(complete_target, char(9, 10, 11, 12, 13, 32)) <> ''
            AND instr(complete_kind, char(0)) = 0 AND octet_length(complete_kind) <= 128 AND complete_kind <> '*'
            AND trim(complete_kind, char(9, 10, 11, 12, 13, 32)) <> ''
            AND instr(complete_key, char(0)) = 0 AND octet_length(complete_key) <= 240 AND trim(complete_key, char(9, 10, 11, 12, 13, 32)) <> ''
            AND complete_priority BETWEEN -32768 AND 32767 AND octet_length(complete_digest) = 32
            AND instr(complete_metadata, char(0)) = 0 AND octet_length(complete_metadata) <= 65536 AND octet_length(complete_payload) <= 1048576))
) STRICT;

-- Batches that are open.
CREATE INDEX outbox_batch_open ON outbox_batch (id) WHERE completed_at = 253402214400000000;
-- Retention.
CREATE INDEX outbox_batch_completed ON outbox_batch (completed_at) WHERE completed_at < 253402214400000000;

-- One row of a batch, numbered from 1 in the order of its input. message_id is 0 for one that was rejected before it became a message.
-- fate: 0 open, 1 delivered, 2 dead, 3 cancelled, 4 expired, 5 rejected.
CREATE TABLE outbox_batch_row (
    batch_id   INTEGER NOT NULL,
    message_id INTEGER NOT NULL DEFAULT 0,
    number     INTEGER NOT NULL,
    fate       INTEGER NOT NULL DEFAULT 0,
    reason     TEXT NOT NULL DEFAULT '',
    CONSTRAINT batch_row_pkey PRIMARY KEY (batch_id, number),
    CONSTRAINT batch_row_number_check CHECK (number BETWEEN 1 AND 2147483647 AND batch_id > 0 AND message_id >= 0),
    CONSTRAINT batch_row_fate_check CHECK (fate BETWEEN 0 AND 5 AND (fate = 5) = (message_id = 0)),
    CONSTRAINT batch_row_reason_check CHECK (instr(reason, char(0)) = 0 AND octet_length(reason) <= 1024
        AND (fate = 5) = (trim(reason, char(9, 10, 11, 12, 13, 32)) <> ''))
) STRICT, WITHOUT ROWID;

-- The row of a message that ends or comes back.
CREATE UNIQUE INDEX outbox_batch_row_message ON outbox_batch_row (message_id) WHERE message_id <> 0;
-- Whether a batch has open rows, how many of each fate, and which.
CREATE INDEX outbox_batch_row_fate ON outbox_batch_row (batch_id, fate, number);

-- A message that ends gives its row its fate; one without a settlement was dropped when it was delivered.
-- +goose StatementBegin
CREATE TRIGGER outbox_queue_ended AFTER DELETE ON outbox_queue
WHEN EXISTS (SELECT 1 FROM outbox_batch_row AS r WHERE r.message_id = OLD.message_id AND r.message_id <> 0)
BEGIN
    UPDATE outbox_batch_row
    SET fate = CASE (SELECT s.outcome FROM outbox_settlement AS s WHERE s.message_id = OLD.message_id)
        WHEN 'dead' THEN 2 WHEN 'cancelled' THEN 3 WHEN 'expired' THEN 4 ELSE 1 END
    WHERE message_id = OLD.message_id AND message_id <> 0 AND fate = 0;
END;
-- +goose StatementEnd

-- The last row of a sealed batch completes it.
-- +goose StatementBegin
CREATE TRIGGER outbox_batch_row_ended AFTER UPDATE OF fate ON outbox_batch_row
WHEN NEW.fate <> 0 AND NOT EXISTS (SELECT 1 FROM outbox_batch_row AS r WHERE r.batch_id = NEW.batch_id AND r.fate = 0)
BEGIN
    UPDATE outbox_batch
    SET completed_at = CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000
    WHERE id = NEW.batch_id AND sealed_at < 253402214400000000 AND completed_at = 253402214400000000;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER outbox_batch_sealed AFTER UPDATE OF sealed_at ON outbox_batch
WHEN OLD.sealed_at = 253402214400000000 AND NEW.sealed_at < 253402214400000000
    AND NOT EXISTS (SELECT 1 FROM outbox_batch_row AS r WHERE r.batch_id = NEW.id AND r.fate = 0)
BEGIN
    UPDATE outbox_batch
    SET completed_at = CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000
    WHERE id = NEW.id AND completed_at = 253402214400000000;
END;
-- +goose StatementEnd

-- A completion records its message, unless its key is taken: then it is in the queue or has a settlement.
-- +goose StatementBegin
CREATE TRIGGER outbox_batch_completed AFTER UPDATE OF completed_at ON outbox_batch
WHEN OLD.completed_at = 253402214400000000 AND NEW.completed_at < 253402214400000000 AND NEW.complete_consumer <> ''
BEGIN
    INSERT INTO outbox_message (tenant, consumer, target, kind, key, priority, digest, metadata, payload, created_at)
    SELECT
        NEW.tenant, NEW.complete_consumer, NEW.complete_target, NEW.complete_kind,
        NEW.complete_key || CASE WHEN NEW.run > 1 THEN '/run-' || NEW.run ELSE '' END,
        NEW.complete_priority, NEW.complete_digest, NEW.complete_metadata, NEW.complete_payload,
        CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000
    WHERE NOT EXISTS (
        SELECT 1 FROM outbox_message AS m
        WHERE m.tenant = NEW.tenant AND m.consumer = NEW.complete_consumer
            AND m.key = NEW.complete_key || CASE WHEN NEW.run > 1 THEN '/run-' || NEW.run ELSE '' END
    );
    INSERT INTO outbox_queue (message_id, consumer, target, kind, tenant, priority, due_at, born_at)
    SELECT m.id, m.consumer, m.target, m.kind, m.tenant, m.priority, m.created_at, m.created_at
    FROM outbox_message AS m
    WHERE m.tenant = NEW.tenant AND m.consumer = NEW.complete_consumer
        AND m.key = NEW.complete_key || CASE WHEN NEW.run > 1 THEN '/run-' || NEW.run ELSE '' END
        AND NOT EXISTS (SELECT 1 FROM outbox_queue AS q WHERE q.message_id = m.id)
        AND NOT EXISTS (SELECT 1 FROM outbox_settlement AS s WHERE s.message_id = m.id);
END;
-- +goose StatementEnd

-- A message that is brought back, its queue row written before its settlement goes, opens its row and its batch. A purged one leaves its row
-- the fate it had.
-- +goose StatementBegin
CREATE TRIGGER outbox_settlement_undone AFTER DELETE ON outbox_settlement
WHEN EXISTS (SELECT 1 FROM outbox_batch_row AS r WHERE r.message_id = OLD.message_id AND r.message_id <> 0)
    AND EXISTS (SELECT 1 FROM outbox_queue AS q WHERE q.message_id = OLD.message_id)
BEGIN
    UPDATE outbox_batch_row
    SET fate = 0
    WHERE message_id = OLD.message_id AND message_id <> 0;
    UPDATE outbox_batch
    SET run = run + 1, completed_at = 253402214400000000
    WHERE id = (SELECT r.batch_id FROM outbox_batch_row AS r WHERE r.message_id = OLD.message_id AND r.message_id <> 0)
        AND completed_at < 253402214400000000;
END;
-- +goose StatementEnd

-- +goose Down

DROP TRIGGER outbox_settlement_undone;
DROP TRIGGER outbox_queue_ended;
DROP TABLE outbox_batch_row;
DROP TABLE outbox_batch;
