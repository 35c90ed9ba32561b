-- Who may do what: group roles without login, for the roles with which your programs log in, as in
--     GRANT "outbox_producer", "outbox_sender" TO shop;
-- It ends in the same rights whatever was granted before, as often as it runs, and beside running programs. Run it after
-- every migration, as a superuser, or as the owner of the tables with the right to create roles (or with the roles there).
-- The first run gives the tables to the migrator, which locks each for an instant; no later one locks any. A program that owned
-- them is like any other from then on: give it its roles right away.

BEGIN;

SET LOCAL lock_timeout = '5s';

-- Two at once would trip over each other.
SELECT pg_advisory_xact_lock(hashtextextended('fencepost grants', 0));

DO $$
DECLARE
    role name;
    owned regclass;
    routine regprocedure;
BEGIN
    FOREACH role IN ARRAY ARRAY[
        'outbox_migrator', 'outbox_producer', 'outbox_sender', 'outbox_operator', 'outbox_janitor', 'outbox_viewer', 'outbox_repair'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            -- An owner hands over only to a role of which he is a member, and stays able to migrate.
            IF role = 'outbox_migrator' AND NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user) THEN
                EXECUTE format('GRANT %I TO CURRENT_USER', role);
            END IF;
        END IF;
    END LOOP;

    IF (SELECT pg_get_userbyid(n.nspowner) FROM pg_catalog.pg_namespace AS n WHERE n.oid = 'outbox'::regnamespace) <> 'outbox_migrator' THEN
        ALTER SCHEMA outbox OWNER TO "outbox_migrator";
    END IF;
    FOR owned IN
        SELECT c.oid::regclass
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND pg_get_userbyid(c.relowner) <> 'outbox_migrator'
        ORDER BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO %I', owned, 'outbox_migrator');
    END LOOP;
    FOR routine IN
        SELECT p.oid::regprocedure
        FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'outbox'::regnamespace AND pg_get_userbyid(p.proowner) <> 'outbox_migrator'
        ORDER BY p.proname
    LOOP
        EXECUTE format('ALTER ROUTINE %s OWNER TO %I', routine, 'outbox_migrator');
    END LOOP;
END
$$;

-- Start from nothing. The migrator owns everything and needs no grant; the repair role keeps nothing.
REVOKE ALL ON SCHEMA outbox
    FROM PUBLIC, "outbox_producer", "outbox_sender", "outbox_operator", "outbox_janitor", "outbox_viewer", "outbox_repair";
REVOKE ALL ON ALL TABLES IN SCHEMA outbox
    FROM PUBLIC, "outbox_producer", "outbox_sender", "outbox_operator", "outbox_janitor", "outbox_viewer", "outbox_repair";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA outbox
    FROM PUBLIC, "outbox_producer", "outbox_sender", "outbox_operator", "outbox_janitor", "outbox_viewer", "outbox_repair";
REVOKE ALL ON ALL ROUTINES IN SCHEMA outbox
    FROM PUBLIC, "outbox_producer", "outbox_sender", "outbox_operator", "outbox_janitor", "outbox_viewer", "outbox_repair";

-- A program checks at its start that it fits the schema.
GRANT USAGE ON SCHEMA outbox TO "outbox_producer", "outbox_sender", "outbox_operator", "outbox_janitor", "outbox_viewer";
GRANT SELECT ON outbox.schema_version TO "outbox_producer", "outbox_sender", "outbox_operator", "outbox_janitor", "outbox_viewer";

-- Producer: adds messages and learns what stands under a key. It reads no content and changes nothing that is there.
GRANT USAGE ON SEQUENCE outbox.message_id_seq TO "outbox_producer";
GRANT
    INSERT (
        id, tenant, consumer, target, kind, key, order_key, priority, digest, metadata, payload, source_position, source_event_id, max_age
    ),
    SELECT (id, tenant, consumer, key, digest)
    ON outbox.message TO "outbox_producer";
GRANT
    INSERT (message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at),
    SELECT (message_id, state, leased_until)
    ON outbox.queue TO "outbox_producer";
GRANT SELECT (message_id, outcome) ON outbox.settlement TO "outbox_producer";
GRANT EXECUTE ON FUNCTION outbox.enqueue TO "outbox_producer";

-- Producer and sender alike, since either may be a service as a whole: claims keys, keeps readers' places, and makes a restored stream its own.
GRANT SELECT, UPDATE (id, base, written_by) ON outbox.incarnation TO "outbox_producer", "outbox_sender";
GRANT
    SELECT,
    INSERT (tenant, scope, key, digest, token, held_until, state, reason, ended_at),
    UPDATE (state, token, epoch, claimed_at, held_until, ended_at, reason, result)
    ON outbox.claim TO "outbox_producer", "outbox_sender";
GRANT
    SELECT,
    INSERT (name, incarnation, transaction_id, position, digest),
    UPDATE (incarnation, transaction_id, position, digest, saved_at),
    DELETE
    ON outbox.reader TO "outbox_producer", "outbox_sender";

-- Producer: appends events and learns what stands under an id, but reads none of their content.
GRANT USAGE ON SEQUENCE outbox.event_position_seq TO "outbox_producer";
GRANT
    INSERT (position, transaction_id, tenant, stream, type, event_id, digest, metadata, payload),
    SELECT (position, transaction_id, tenant, event_id, digest)
    ON outbox.event TO "outbox_producer";

-- Producer: fills batches, seals them, and sees how far they are. Who ends or replays a message needs no rights on them.
GRANT
    INSERT (
        tenant, consumer, target, kind, key, digest, complete_consumer, complete_target, complete_kind, complete_key, complete_priority,
        complete_digest, complete_metadata, complete_payload
    ),
    SELECT (digest),
    UPDATE (sealed_at)
    ON outbox.batch TO "outbox_producer";
GRANT INSERT (batch_id, number, message_id, fate, reason) ON outbox.batch_row TO "outbox_producer";

-- Sender: reads the facts that its messages come from.
GRANT SELECT ON outbox.event TO "outbox_sender";

-- Sender: leases, renews, settles. It adds and changes no message; it removes one only where a policy drops what is delivered.
GRANT SELECT, DELETE ON outbox.message TO "outbox_sender";
GRANT
    SELECT, DELETE,
    UPDATE (attempt, epoch, unsure, token, leased_by, leased_until, due_at, state, last_error),
    -- Of no use without a producer's: who is both may enqueue messages that are born leased.
    INSERT (attempt, epoch, token, leased_by, leased_until)
    ON outbox.queue TO "outbox_sender";
GRANT SELECT, INSERT, UPDATE (message_id, leased_until, blocked), DELETE ON outbox.order_lease TO "outbox_sender";
GRANT
    SELECT,
    INSERT (message_id, outcome, cause, reason, attempt, epoch, replays, replayed_at, settled_by, result)
    ON outbox.settlement TO "outbox_sender";
GRANT SELECT, INSERT (name, host), UPDATE (seen_at) ON outbox.worker TO "outbox_sender";
GRANT SELECT ON outbox.pause TO "outbox_sender";

-- Sender: verifies the credential of a named worker. The hash is of 256 random bits, so that nobody comes back from it to the secret; all others see
-- who is let in, not by what.
GRANT SELECT ON outbox.credential, outbox.credential_scope TO "outbox_sender";
GRANT SELECT (created_at, revoked_at, name, created_by, created_for, revoked_by, revoked_for)
    ON outbox.credential TO "outbox_viewer", "outbox_operator", "outbox_janitor";
GRANT SELECT ON outbox.credential_scope TO "outbox_viewer", "outbox_operator", "outbox_janitor";

-- Viewer: sees everything but content (payload, metadata and their digest, a handler's result) and tokens; operators and
-- janitors see it too.
GRANT SELECT (id, source_position, max_age, created_at, priority, tenant, consumer, target, kind, key, order_key, source_event_id)
    ON outbox.message TO "outbox_viewer", "outbox_janitor";
GRANT
    SELECT (
        message_id, leased_by, epoch, due_at, born_at, expires_at, leased_until, replayed_at, attempt, attempt_limit, replays, priority,
        state, unsure, consumer, target, kind, tenant, order_key, last_error
    )
    ON outbox.queue TO "outbox_viewer", "outbox_janitor";
GRANT SELECT (message_id, epoch, settled_by, settled_at, replayed_at, attempt, replays, outcome, cause, reason)
    ON outbox.settlement TO "outbox_viewer", "outbox_janitor";
GRANT SELECT ON outbox.message, outbox.queue, outbox.settlement TO "outbox_operator";
GRANT SELECT ON outbox.order_lease, outbox.worker, outbox.pause, outbox.audit TO "outbox_viewer", "outbox_operator", "outbox_janitor";

GRANT SELECT (position, transaction_id, recorded_at, tenant, stream, type, event_id) ON outbox.event TO "outbox_viewer", "outbox_janitor";
GRANT SELECT (epoch, claimed_at, held_until, ended_at, state, tenant, scope, key, reason) ON outbox.claim TO "outbox_viewer", "outbox_janitor";
GRANT SELECT ON outbox.incarnation, outbox.reader TO "outbox_viewer", "outbox_operator", "outbox_janitor";
GRANT SELECT ON outbox.event, outbox.claim TO "outbox_operator";
GRANT DELETE ON outbox.reader TO "outbox_operator";

-- Batches without the content that a completion records. An operator seals one to cancel it.
GRANT
    SELECT (
        id, created_at, sealed_at, completed_at, run, complete_priority, tenant, consumer, target, kind, key, complete_consumer,
        complete_target, complete_kind, complete_key
    )
    ON outbox.batch TO "outbox_producer", "outbox_sender", "outbox_viewer", "outbox_janitor";
GRANT SELECT ON outbox.batch_row TO "outbox_producer", "outbox_sender", "outbox_viewer", "outbox_operator", "outbox_janitor";
GRANT SELECT, UPDATE (sealed_at) ON outbox.batch TO "outbox_operator";

-- Operator: cancels, replays, resolves, pauses, releases, unblocks, and leaves an audit row that he cannot change.
GRANT INSERT (message_id, action, tenant, actor, reason, detail) ON outbox.audit TO "outbox_operator";
GRANT
    INSERT (
        message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at, epoch, attempt, attempt_limit,
        replays, replayed_at, unsure
    ),
    UPDATE (state, due_at, born_at, expires_at, attempt, attempt_limit, token, leased_until, leased_by, unsure),
    DELETE
    ON outbox.queue TO "outbox_operator";
GRANT INSERT, UPDATE (message_id, leased_until, blocked), DELETE ON outbox.order_lease TO "outbox_operator";
GRANT
    INSERT (message_id, outcome, cause, reason, attempt, epoch, replays, replayed_at),
    DELETE
    ON outbox.settlement TO "outbox_operator";
GRANT
    INSERT (consumer, target, kind, tenant, mode, actor, reason),
    UPDATE (mode, actor, reason, paused_at),
    DELETE
    ON outbox.pause TO "outbox_operator";

-- Operator: lets named workers in, for ever under the same salt and hash, and shuts them out.
GRANT
    INSERT (name, salt, hash, iterations, created_by, created_for),
    UPDATE (revoked_at, revoked_by, revoked_for)
    ON outbox.credential TO "outbox_operator";
GRANT INSERT ON outbox.credential_scope TO "outbox_operator";

-- Janitor: removes what was settled long ago and expires what nobody leased. A row lock takes the right to update some column:
-- one that decides nothing.
GRANT DELETE ON outbox.message TO "outbox_janitor";
GRANT UPDATE (last_error), DELETE ON outbox.queue TO "outbox_janitor";
GRANT DELETE ON outbox.order_lease TO "outbox_janitor";
GRANT
    INSERT (message_id, outcome, reason, attempt, epoch, replays, replayed_at),
    UPDATE (settled_by),
    DELETE
    ON outbox.settlement TO "outbox_janitor";
GRANT DELETE ON outbox.worker, outbox.audit TO "outbox_janitor";
GRANT SELECT (digest), DELETE ON outbox.event TO "outbox_janitor";
GRANT DELETE ON outbox.claim, outbox.batch, outbox.batch_row TO "outbox_janitor";
GRANT UPDATE (created_at) ON outbox.batch TO "outbox_janitor";
GRANT UPDATE (purged_transaction_id, purged_position, purged_digest, written_by) ON outbox.incarnation TO "outbox_janitor";

COMMIT;
