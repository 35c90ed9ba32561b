-- Named workers: credential, by which a sender proves who it is, and the consumers and tenants that it may lease for.
-- Locks: none on existing tables (all objects are new). Old and new binaries: one that knows no credentials uses none of this.
--
-- Conventions: as in 00001_core.sql.

-- +goose Up

SET LOCAL lock_timeout = '5s';

-- A named worker, and who let it in and shut it out, for what reason; revoked_at is forever while it is let in. A name is never given twice: what
-- was done under it stays that worker's. The secret is not here: hash is PBKDF2 with HMAC-SHA-256 of its 256 random bits, over salt.
CREATE TABLE outbox.credential (
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at  timestamptz NOT NULL DEFAULT '9999-12-31 00:00:00+00',
    iterations  integer NOT NULL,
    name        text NOT NULL,
    created_by  text NOT NULL,
    created_for text NOT NULL,
    revoked_by  text NOT NULL DEFAULT '',
    revoked_for text NOT NULL DEFAULT '',
    salt        bytea NOT NULL,
    hash        bytea NOT NULL,
    CONSTRAINT credential_pkey PRIMARY KEY (name),
    CONSTRAINT credential_at_check CHECK (created_at BETWEEN '2000-01-01 00:00:00+00' AND '9999-12-31 00:00:00+00'
        AND revoked_at BETWEEN '2000-01-01 00:00:00+00' AND '9999-12-31 00:00:00+00'),
    CONSTRAINT credential_name_check CHECK (octet_length(name) <= 128 AND name <> '*' AND btrim(name, E' \t\n\x0B\f\r') <> ''),
    CONSTRAINT credential_created_check CHECK (octet_length(created_by) <= 128 AND btrim(created_by, E' \t\n\x0B\f\r') <> ''
        AND octet_length(created_for) <= 4096 AND btrim(created_for, E' \t\n\x0B\f\r') <> ''),
    CONSTRAINT credential_revoked_check CHECK (octet_length(revoked_by) <= 128 AND octet_length(revoked_for) <= 4096
        AND (revoked_at = '9999-12-31 00:00:00+00') = (btrim(revoked_by, E' \t\n\x0B\f\r') = '')
        AND (revoked_at = '9999-12-31 00:00:00+00') = (btrim(revoked_for, E' \t\n\x0B\f\r') = '')),
    CONSTRAINT credential_hash_check CHECK (octet_length(salt) = 16 AND octet_length(hash) = 32 AND iterations BETWEEN 1000 AND 10000000)
);

-- For which consumers and tenants a credential is good; each may be the wildcard '*'. One without a row here is good for nothing.
CREATE TABLE outbox.credential_scope (
    name     text NOT NULL,
    consumer text NOT NULL,
    tenant   text NOT NULL,
    CONSTRAINT credential_scope_pkey PRIMARY KEY (name, consumer, tenant),
    CONSTRAINT credential_scope_name_check CHECK (octet_length(name) BETWEEN 1 AND 128 AND octet_length(consumer) BETWEEN 1 AND 128
        AND octet_length(tenant) <= 128)
);

REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM PUBLIC;

-- +goose Down

SET LOCAL lock_timeout = '5s';

DROP TABLE outbox.credential_scope;
DROP TABLE outbox.credential;
