-- Named workers on SQLite: what schema/postgres/00004_credential.sql makes, under the prefix outbox_ in place of a schema of its own.
-- Locks: the file's one write lock, for a moment. Old and new binaries: one that knows no credentials uses none of this.
--
-- Conventions: as in 00001_core.sql.

-- +goose NO TRANSACTION
-- +goose Up

-- A named worker, and who let it in and shut it out, for what reason; revoked_at is forever while it is let in. A name is never given twice: what
-- was done under it stays that worker's. The secret is not here: hash is PBKDF2 with HMAC-SHA-256 of its 256 random bits, over salt.
CREATE TABLE outbox_credential (
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER NOT NULL DEFAULT 253402214400000000,
    iterations  INTEGER NOT NULL,
    name        TEXT NOT NULL,
    created_by  TEXT NOT NULL,
    created_for TEXT NOT NULL,
    revoked_by  TEXT NOT NULL DEFAULT '',
    revoked_for TEXT NOT NULL DEFAULT '',
    salt        BLOB NOT NULL,
    hash        BLOB NOT NULL,
    CONSTRAINT credential_pkey PRIMARY KEY (name),
    CONSTRAINT credential_at_check CHECK (created_at BETWEEN 946684800000000 AND 253402214400000000
        AND revoked_at BETWEEN 946684800000000 AND 253402214400000000),
    CONSTRAINT credential_name_check CHECK (instr(name, char(0)) = 0 AND octet_length(name) <= 128 AND name <> '*' AND trim(name, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT credential_created_check CHECK (instr(created_by, char(0)) = 0 AND octet_length(created_by) <= 128
        AND trim(created_by, char(9, 10, 11, 12, 13, 32)) <> '' AND instr(created_for, char(0)) = 0 AND octet_length(created_for) <= 4096
        AND trim(created_for, char(9, 10, 11, 12, 13, 32)) <> ''),
    CONSTRAINT credential_revoked_check CHECK (instr(revoked_by, char(0)) = 0 AND octet_length(revoked_by) <= 128
        AND instr(revoked_for, char(0)) = 0 AND octet_length(revoked_for) <= 4096
        AND (revoked_at = 253402214400000000) = (trim(revoked_by, char(9, 10, 11, 12, 13, 32)) = '')
        AND (revoked_at = 253402214400000000) = (trim(revoked_for, char(9, 10, 11, 12, 13, 32)) = '')),
    CONSTRAINT credential_hash_check CHECK (octet_length(salt) = 16 AND octet_length(hash) = 32 AND iterations BETWEEN 1000 AND 10000000)
) STRICT, WITHOUT ROWID;

-- For which consumers and tenants a credential is good; each may be the wildcard '*'. One without a row here is good for nothing.
CREATE TABLE outbox_credential_scope (
    name     TEXT NOT NULL,
    consumer TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    CONSTRAINT credential_scope_pkey PRIMARY KEY (name, consumer, tenant),
    CONSTRAINT credential_scope_name_check CHECK (instr(name, char(0)) = 0 AND octet_length(name) BETWEEN 1 AND 128
        AND instr(consumer, char(0)) = 0 AND octet_length(consumer) BETWEEN 1 AND 128 AND instr(tenant, char(0)) = 0 AND octet_length(tenant) <= 128)
) STRICT, WITHOUT ROWID;

-- +goose Down

DROP TABLE outbox_credential_scope;
DROP TABLE outbox_credential;
